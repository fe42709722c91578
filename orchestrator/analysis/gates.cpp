// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/gates.hpp"

#include "orchestrator/analysis/finding.hpp"
#include "schemas/check_value.hpp"
#include "schemas/error.hpp"

#include <algorithm>
#include <vector>

namespace plateau {

namespace {

// The cases that a list of the summary names for a check, each once.
std::vector<std::string> cases_of_check(json const& list, std::string const& check) {
  std::vector<std::string> cases;
  for (auto const& entry : list) {
    auto const id = entry.at("case_id").get<std::string>();
    if (entry.at("check") == check && (cases.empty() || cases.back() != id)) cases.push_back(id);
  }
  return cases;
}

void add(std::string& text, std::string const& what, std::vector<std::string> const& cases) {
  for (std::size_t i = 0; i < cases.size(); ++i)
    text += (i > 0 ? ", " : (text.empty() ? "" : "; ") + what + " in ") + cases[i];
}

std::string no_check(std::string_view name) {
  std::vector<std::string> known;
  for (auto const& each : checks::all) known.emplace_back(each.name);
  auto const hint = did_you_mean(name, known);
  auto const allowed = check_names() + ", with commas between them, or none";
  return "\"" + std::string(name) + "\" is no check" +
         (hint.empty() ? "; choose from " + allowed : hint + " (" + allowed + ")");
}

} // namespace

gates default_gates() { return {{std::string(checks::growing.name)}, false}; }

std::string check_names() {
  std::string text;
  for (auto const& known : checks::all) text += (text.empty() ? "" : ", ") + std::string(known.name);
  return text;
}

gates parse_gates(std::string_view list) {
  gates g{{}, true};
  if (list == "none") return g;
  while (true) {
    auto const name = list.substr(0, list.find(','));
    if (std::ranges::find(checks::all, name, &check::name) == checks::all.end()) throw input_error(no_check(name));
    g.checks.emplace_back(name);
    if (name.size() == list.size()) return g;
    list.remove_prefix(name.size() + 1);
  }
}

void refuse_gates_without_a_soak(gates const& g, job const& j) {
  constexpr std::int64_t least_windows = 6; // growth is not judged on fewer
  if (!g.strict || j.soak.windows >= least_windows) return;
  for (auto const& gate : g.checks)
    if (gate == checks::growing.name || gate == checks::inconclusive.name)
      throw input_error("--fail-on " + gate + " needs a soak of at least " + std::to_string(least_windows) +
                        " windows, and the job has " + std::to_string(j.soak.windows) + " (soak.windows)");
}

std::string failed_gates(json const& summary, gates const& g) {
  std::string text;
  for (auto const& gate : g.checks) add(text, gate, cases_of_check(summary.at("findings"), gate));
  if (!g.strict) return text;
  for (auto const& gate : g.checks)
    add(text, gate + " could not be told", cases_of_check(summary.at("not_made"), gate));
  return text;
}

} // namespace plateau
