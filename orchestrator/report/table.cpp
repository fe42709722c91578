// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/report/table.hpp"

#include "orchestrator/analysis/finding.hpp"
#include "orchestrator/analysis/summary.hpp"
#include "orchestrator/report/text.hpp"
#include "schemas/job.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace plateau {

namespace {

constexpr std::string_view red = "\033[31m", yellow = "\033[33m", green = "\033[32m", plain_text = "\033[0m";

// "encoder_block float32, hidden 256, batch 2, seq 32, closed loop, intra-op threads 1"
std::string header(json const& meta) {
  auto text = meta.value("workload", std::string("encoder_block"));
  if (meta.contains("dtype")) text += " " + std::string(plain_dtype(meta["dtype"].get<std::string>()));
  auto const add = [&](char const* key, char const* words) {
    if (meta.contains(key)) text += std::string(", ") + words + " " + meta[key].dump();
  };
  add("hidden", "hidden");
  add("batch", "batch");
  add("seq_len", "seq");
  text += ", closed loop";
  add("intra_op_threads", "intra-op threads");
  return text + "\n";
}

/// The rows of the measured cases, and what their footnotes have to say.
struct body {
  std::vector<row> rows;                     // the title first
  std::map<std::string, std::int64_t> marks; // percentile: samples that it needs, where there were too few
};

std::string percentile_text(json const& result, std::string const& name, body& b) {
  if (result["latency_ms"].is_null()) return "- ";
  auto const ms = result["latency_ms"][name].get<double>();
  auto text = formatted(ms < 0.01 ? "%.6f" : "%.3f", ms); // down to the clock's nanosecond
  auto const& interval = result["latency_intervals"][name];
  if (interval["enough_samples"].get<bool>()) return text + " ";
  b.marks[name] = interval["samples_needed"].get<std::int64_t>();
  return text + "~";
}

// "PLATEAU from window 2", "GROWING", "-" where there was no soak.
std::string memory_text(json const& growth) {
  if (growth.is_null()) return "-";
  auto text = growth["outcome"].get<std::string>();
  if (growth.contains("plateau_from")) text += " from window " + growth["plateau_from"].dump();
  return text;
}

row measured_row(json const& result, body& b) {
  auto const& churn = result["churn"];
  auto const& after = result["memory_post"];
  return {result["case_id"].get<std::string>(),
          percentile_text(result, "p50", b),
          percentile_text(result, "p99", b),
          count_text(result["throughput_requests_per_sec"]),
          churn.is_null() ? "-" : count_text(churn["allocation_events_per_request"]),
          count_text(result["segment_alloc_event_delta"]),
          after.is_null() ? "-" : bytes_text(after["reserved_bytes"]),
          result["growth"].is_null()
              ? "-"
              : bytes_text(std::round(result["growth"]["bytes_per_1000_requests"].get<double>())),
          result["ranks_measured"].dump() + "/" + result["ranks_total"].dump(),
          memory_text(result["growth"])};
}

json const* find_result(json const& summary, std::string const& id) {
  auto const same = [&](json const& result) { return result["case_id"] == id; };
  auto const found = std::ranges::find_if(summary["results"], same);
  return found == summary["results"].end() ? nullptr : &*found;
}

std::string painted(std::string text, std::string_view colour, table_style style) {
  return style.colour ? std::string(colour) + text + std::string(plain_text) : text;
}

std::string_view colour_of(std::string const& status) {
  return status == "skipped" || status == "missing" ? yellow : red;
}

std::string status_text(json const& entry, table_style style) {
  auto const status = entry["status"].get<std::string>();
  auto const reason = entry["reason"].get<std::string>();
  return painted(status, colour_of(status), style) + (reason.empty() ? "" : "  " + reason);
}

std::string case_lines(json const& summary, body& b, table_style style) {
  b.rows = {
      {"case", "p50 ms ", "p99 ms ", "req/s", "alloc/req", "segments", "reserved", "growth/1k", "ranks", "memory"}};
  std::vector<std::pair<json const*, row>> lines; // of the whole grid; a case without a result has its name alone
  for (auto const& entry : summary["cases"]) {
    auto const id = entry["case_id"].get<std::string>();
    auto const* result = find_result(summary, id);
    b.rows.push_back(result != nullptr ? measured_row(*result, b) : row{id});
    lines.push_back({&entry, b.rows.back()});
  }
  auto const widths = widths_of(b.rows);
  auto text = line(b.rows[0], widths) + "\n";
  for (auto const& [entry, cells] : lines) {
    text += line(cells, widths);
    if ((*entry)["status"] != "passed") text += "  " + status_text(*entry, style);
    text += "\n";
  }
  return text;
}

std::string footnotes(body const& b) {
  std::string text;
  for (auto const& [name, needed] : b.marks)
    text += "~ fewer samples than this " + name + " needs (" + std::to_string(needed) + ")\n";
  return text;
}

std::string joined(std::vector<std::string> const& parts) {
  std::string text;
  for (auto const& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

// What the columns do not show already.
std::string finding_lines(json const& summary, table_style style) {
  std::string text;
  for (auto const& found : summary["findings"]) {
    auto const check = found["check"].get<std::string>();
    if (check == checks::churn.name || check == checks::skipped.name) continue;
    text += found["case_id"].get<std::string>() + "  " +
            painted(check, check == checks::growing.name ? red : yellow, style) + "  " +
            found["reason"].get<std::string>() + "\n";
  }
  return text;
}

std::string comparability_line(json const& summary, table_style style) {
  auto const& run = summary["run"];
  if (!run.contains("not_comparable")) return "";
  return painted("not comparable", yellow, style) + "  " + run["not_comparable"].get<std::string>() + "\n";
}

// What workers warned of, each text once, with where it was said first.
std::string warning_lines(json const& summary, table_style style) {
  std::vector<std::pair<std::string, std::vector<std::string>>> warnings; // text, and "case, rank N" for each time
  for (auto const& entry : summary["cases"])
    for (auto const& rank : entry["ranks"]) {
      if (!rank.contains("warnings")) continue;
      for (auto const& text : rank["warnings"].get<std::vector<std::string>>()) {
        auto const same = [&](auto const& known) { return known.first == text; };
        auto found = std::ranges::find_if(warnings, same);
        if (found == warnings.end()) found = warnings.insert(found, {text, {}});
        found->second.push_back(entry["case_id"].get<std::string>() + ", rank " + rank["rank"].dump());
      }
    }
  std::string lines;
  for (auto const& [text, places] : warnings)
    lines += painted("warning", yellow, style) + "  " + places[0] + ": " + text +
             (places.size() > 1 ? " (and " + std::to_string(places.size() - 1) + " times more)" : "") + "\n";
  return lines;
}

// Cases that were measured on other devices than the rest.
std::string moved_lines(json const& summary, table_style style) {
  std::string lines;
  for (auto const& moved : summary["run"].value("moved", json::array()))
    lines += painted("warning", yellow, style) + "  " + moved["told"].get<std::string>() + "\n";
  return lines;
}

// "PLATEAU in 4 of 6 measured cases; GROWING in 2 (eager.c2, eager.c4)"
std::string verdict_line(json const& summary, table_style style) {
  std::map<std::string, std::vector<std::string>> cases; // by outcome
  for (auto const& result : summary["results"])
    if (!result["growth"].is_null())
      cases[result["growth"]["outcome"].get<std::string>()].push_back(result["case_id"].get<std::string>());
  if (cases.empty()) return "growth was not judged: the job has no soak\n";
  auto const count = [&](char const* outcome) { return cases[outcome].size(); };
  auto text = painted("PLATEAU", count("PLATEAU") == summary["results"].size() ? green : plain_text, style) + " in " +
              std::to_string(count("PLATEAU")) + " of " + std::to_string(summary["results"].size()) +
              (summary["results"].size() == 1 ? " measured case" : " measured cases");
  for (auto const& [outcome, colour] : {std::pair{"GROWING", red}, std::pair{"INCONCLUSIVE", yellow}})
    if (count(outcome) > 0)
      text += "; " + painted(outcome, colour, style) + " in " + std::to_string(count(outcome)) + " (" +
              joined(cases[outcome]) + ")";
  return text + "\n";
}

// "free of allocator events: 2 of 6 measured cases (arena.c2, arena.c4); churn 11 events per request in eager"
std::string events_line(json const& summary, table_style style) {
  auto const& results = summary["results"];
  std::vector<std::string> stable, churn;
  std::map<std::string, std::vector<std::string>> churn_of_mode; // each figure once
  for (auto const& result : results) {
    if (result["memory_stable"] == true) stable.push_back(result["case_id"].get<std::string>());
    if (result["churn"].is_null()) continue;
    auto const events = count_text(result["churn"]["allocation_events_per_request"]);
    auto& figures = churn_of_mode[result["mode"].get<std::string>()];
    if (events != "0" && std::ranges::find(figures, events) == figures.end()) figures.push_back(events);
  }
  for (auto const& [mode, figures] : churn_of_mode)
    if (!figures.empty()) churn.push_back(joined(figures) + " events per request in " + mode);
  auto text = painted("free of allocator events:", stable.size() == results.size() ? green : plain_text, style) + " " +
              std::to_string(stable.size()) + " of " + std::to_string(results.size()) +
              (results.size() == 1 ? " measured case" : " measured cases");
  if (!stable.empty()) text += " (" + joined(stable) + ")";
  if (!churn.empty()) text += "; churn " + joined(churn);
  return text + "\n";
}

// Up to where each mode fits, and what a rehearsal does not tell.
std::string rehearsal_limits(json const& summary) {
  auto const rehearsal = summary.value("rehearsal", json());
  if (rehearsal.is_null()) return "";
  std::string text;
  for (auto const& mode : summary["memory_per_stream"]["modes"]) text += mode["told"].get<std::string>() + "\n";
  if (auto const why = summary["memory_per_stream"]["why_none"].get<std::string>(); !why.empty())
    text += "how many streams fit is not known: " + why + "\n";
  text += "a rehearsal cannot know:\n";
  for (auto const& unknown : rehearsal["cannot_know"]) text += "  - " + unknown.get<std::string>() + "\n";
  return text;
}

} // namespace

std::string table(json const& summary, table_style style) {
  check_format(summary, summary_format);
  body b;
  auto text = rehearsal_line(summary) + header(summary["meta"]) + case_lines(summary, b, style);
  text += footnotes(b) + finding_lines(summary, style);
  text += warning_lines(summary, style) + comparability_line(summary, style) + moved_lines(summary, style);
  if (summary["results"].empty()) return text + "nothing was measured\n";
  if (auto const noise = summary["noise"]["told"].get<std::string>(); !noise.empty()) text += noise + "\n";
  return text + events_line(summary, style) + verdict_line(summary, style) + rehearsal_limits(summary);
}

} // namespace plateau
