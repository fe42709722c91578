// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/report/explain.hpp"

#include "orchestrator/analysis/summary.hpp"
#include "orchestrator/report/text.hpp"
#include "schemas/job.hpp"

#include <cstdint>

namespace plateau {

namespace {

// A whole number where it is one; nothing where nothing was requested.
json per_request(std::int64_t count, std::int64_t requests) {
  if (requests < 1) return nullptr;
  if (count % requests == 0) return count / requests;
  return static_cast<double>(count) / static_cast<double>(requests);
}

/// Events and bytes, of an operator or of all of them.
struct tally {
  std::int64_t allocations = 0, allocated = 0, frees = 0, freed = 0;

  std::int64_t kept() const { return allocated - freed; }
};

tally tally_of(json const& op) {
  return {op["allocation_events"], op["allocated_bytes"], op["free_events"], op["freed_bytes"]};
}

tally sum_of(json const& ops) {
  tally sum;
  for (auto const& op : ops) {
    auto const t = tally_of(op);
    sum.allocations += t.allocations;
    sum.allocated += t.allocated;
    sum.frees += t.frees;
    sum.freed += t.freed;
  }
  return sum;
}

row row_of(std::string const& name, tally const& t, std::int64_t requests) {
  return {"  " + name,
          count_text(per_request(t.allocations, requests)),
          bytes_text(per_request(t.allocated, requests)),
          count_text(per_request(t.frees, requests)),
          bytes_text(t.kept()),
          ""};
}

std::string operators(json const& tracked) {
  auto const requests = tracked["requests"].get<std::int64_t>();
  std::vector<row> rows{{"  operator", "alloc/req", "bytes/req", "frees/req", "kept", ""}};
  for (auto const& op : tracked["ops"]) {
    auto const name = op["op"].get<std::string>();
    rows.push_back(row_of(name.empty() ? "(no operator)" : name, tally_of(op), requests));
  }
  rows.push_back(row_of("sum", sum_of(tracked["ops"]), requests));
  auto const widths = widths_of(rows);
  std::string text;
  for (auto const& cells : rows) text += line(cells, widths) + "\n";
  return text;
}

// What the operators leave of the allocator's own counters: nothing, or the attribution is wrong.
std::string balance(json const& tracked) {
  auto const sum = sum_of(tracked["ops"]);
  auto const events = tracked["allocation_events"].get<std::int64_t>() - sum.allocations;
  auto const frees = tracked["free_events"].get<std::int64_t>() - sum.frees;
  auto const bytes = tracked["allocated_bytes"].get<std::int64_t>() - sum.kept();
  return "  the allocator counted " + tracked["allocation_events"].dump() + " allocations, " +
         tracked["free_events"].dump() + " frees and " + bytes_text(tracked["allocated_bytes"]) + " kept in " +
         tracked["requests"].dump() + " requests; not accounted for: " + std::to_string(events) + " allocations, " +
         std::to_string(frees) + " frees, " + bytes_text(bytes) + "\n";
}

// The timed window, as the steady churn and what happened once.
std::string timed_window(json const& result) {
  if (result["churn"].is_null()) return "  timed window: " + result["memory_stable_reason"].get<std::string>() + "\n";
  auto const requests = result["total_requests"].get<std::int64_t>();
  auto const& steady = result["churn"]["allocation_events_per_request"];
  auto const events = result["allocation_event_delta"].get<std::int64_t>();
  auto text = "  timed window: " + std::to_string(events) + " allocations in " + std::to_string(requests) + " requests";
  auto const once = steady.is_number_integer() ? events - steady.get<std::int64_t>() * requests : -1;
  if (once >= 0)
    text += ": " + steady.dump() + " in each, and " + std::to_string(once) + " once";
  else // the two windows did not do the same
    text += ": " + count_text(per_request(events, requests)) + " in each" +
            (result["churn"]["window"] == "last soak window" ? ", and " + count_text(steady) + " in the soak" : "");
  return text + "; " + result["segment_alloc_event_delta"].dump() + " segments\n";
}

std::string growth_lines(json const& rank) {
  if (rank["growth"].is_null()) return "";
  std::string text;
  for (auto const& series : rank["growth"]["series"])
    text += "  rank " + rank["rank"].dump() + "  " + series["series"].get<std::string>() + "  " +
            series["outcome"].get<std::string>() + "  " + series["reason"].get<std::string>() + "\n";
  return text;
}

// "  package: compiled on node7 for its own NVIDIA H200 (sm_90, 132 SMs), with torch 2.11.0", each once.
std::string package_lines(json const& result) {
  std::string text;
  for (auto const& rank : result["ranks"]) {
    if (!rank.contains("package") || !rank["package"].contains("compiled_by")) continue;
    auto const& p = rank["package"];
    auto const of = [&](char const* key) { return p.value(key, std::string("?")); };
    auto const line = "  package: compiled on " + of("host") +
                      (p["compiled_by"] == "pretend GPU" ? ", ahead of time, for a pretended " : " for its own ") +
                      of("compiled_on") + " (" + of("architecture") + "), with torch " + of("torch") + "\n";
    if (text.find(line) == std::string::npos) text += line;
  }
  return text;
}

std::string explained(json const& result, json const& meta) {
  auto const dtype = meta.contains("dtype") ? plain_dtype(meta["dtype"].get_ref<std::string const&>()) : "";
  auto text = result["case_id"].get<std::string>() + ": " + result["mode"].get<std::string>() + ", " +
              std::string(dtype) + ", " + result["concurrency"].dump() + " stream threads, ranks " +
              result["ranks_measured"].dump() + "/" + result["ranks_total"].dump() + "\n";
  if (result.contains("attribution"))
    text += operators(result["attribution"]) + balance(result["attribution"]);
  else
    text += "  no tracked window: the job has no soak\n";
  text += timed_window(result) + package_lines(result);
  for (auto const& rank : result["ranks"]) text += growth_lines(rank);
  return text;
}

} // namespace

std::string explanation(json const& summary) {
  check_format(summary, summary_format);
  std::string text;
  for (auto const& result : summary["results"]) text += (text.empty() ? "" : "\n") + explained(result, summary["meta"]);
  if (text.empty()) return "nothing was measured\n";
  text = rehearsal_line(summary) + text + "\n";
  for (auto const& cost : summary["memory_per_stream"]["modes"]) text += cost["told"].get<std::string>() + "\n";
  if (auto const why = summary["memory_per_stream"]["why_none"].get<std::string>(); !why.empty())
    text += "memory per stream: not known, " + why + "\n";
  return text;
}

} // namespace plateau
