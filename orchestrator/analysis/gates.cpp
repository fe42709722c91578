// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/gates.hpp"

#include "orchestrator/analysis/finding.hpp"
#include "schemas/error.hpp"

#include <algorithm>

namespace plateau {

std::string check_names() {
  std::string text;
  for (auto const& known : checks::all) text += (text.empty() ? "" : ", ") + std::string(known.name);
  return text;
}

std::vector<std::string> parse_gates(std::string_view list) {
  std::vector<std::string> gates;
  if (list == "none") return gates;
  while (true) {
    auto const name = list.substr(0, list.find(','));
    if (std::ranges::find(checks::all, name, &check::name) == checks::all.end())
      throw input_error("--fail-on: \"" + std::string(name) + "\" is no check; choose from " + check_names() +
                        ", with commas between them, or none");
    gates.emplace_back(name);
    if (name.size() == list.size()) return gates;
    list.remove_prefix(name.size() + 1);
  }
}

std::string failed_gates(json const& summary, std::span<std::string const> gates) {
  std::string text;
  for (auto const& gate : gates) {
    std::vector<std::string> cases;
    for (auto const& found : summary.at("findings")) {
      auto const id = found.at("case_id").get<std::string>();
      if (found.at("check") == gate && (cases.empty() || cases.back() != id)) cases.push_back(id);
    }
    for (std::size_t i = 0; i < cases.size(); ++i)
      text += (i > 0 ? ", " : (text.empty() ? "" : "; ") + gate + " in ") + cases[i];
  }
  return text;
}

} // namespace plateau
