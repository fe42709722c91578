// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/report/junit.hpp"

#include "orchestrator/analysis/finding.hpp"
#include "orchestrator/analysis/summary.hpp"

#include <algorithm>
#include <pugixml.hpp>
#include <sstream>

namespace plateau {

namespace {

/// The tests of a suite, counted as they are added.
class suite {
public:
  explicit suite(pugi::xml_node node) : node_(node) {}

  pugi::xml_node add(std::string const& of_case, std::string const& name) {
    ++tests_;
    auto test = node_.append_child("testcase");
    test.append_attribute("classname") = of_case.c_str();
    test.append_attribute("name") = name.c_str();
    return test;
  }
  void fail(pugi::xml_node test, std::string const& kind, std::string const& reason) {
    ++failures_;
    auto failure = test.append_child("failure");
    failure.append_attribute("type") = kind.c_str();
    failure.append_attribute("message") = reason.c_str();
  }
  void skip(pugi::xml_node test, std::string const& reason) {
    ++skipped_;
    test.append_child("skipped").append_attribute("message") = reason.c_str();
  }
  void close() {
    node_.append_attribute("tests") = tests_;
    node_.append_attribute("failures") = failures_;
    node_.append_attribute("errors") = 0;
    node_.append_attribute("skipped") = skipped_;
  }

private:
  pugi::xml_node node_;
  int tests_ = 0, failures_ = 0, skipped_ = 0;
};

void add_case(json const& entry, suite& tests) {
  auto const status = entry["status"].get<std::string>();
  auto const test = tests.add(entry["case_id"], "passed");
  if (status == "skipped")
    tests.skip(test, entry["reason"]);
  else if (status != "passed")
    tests.fail(test, status, entry["reason"]);
}

// Why a check was not made of a measured case, or nothing.
std::string not_made(json const& result, std::string_view check) {
  bool const about_growth = check == checks::growing.name || check == checks::inconclusive.name;
  if (about_growth && result["growth"].is_null()) return "no soak: growth was not judged";
  if (check == checks::churn.name && result["memory_stable"].is_null())
    return result["memory_stable_reason"].get<std::string>();
  bool const across = check == checks::unequal.name || check == checks::straggler.name;
  if (across && result["ranks_measured"] == 1) return "one rank: nothing to compare it with";
  return "";
}

void add_check(json const& summary, json const& result, check const& c, bool gate, suite& tests) {
  auto const test = tests.add(result["case_id"], std::string(c.name));
  std::string reasons;
  for (auto const& found : summary["findings"])
    if (found["case_id"] == result["case_id"] && found["check"] == c.name)
      reasons += (reasons.empty() ? "" : "; ") + found["reason"].get<std::string>();
  if (auto const why = not_made(result, c.name); reasons.empty() && !why.empty())
    tests.skip(test, why);
  else if (!reasons.empty() && gate)
    tests.fail(test, std::string(c.name), reasons);
  else if (!reasons.empty())
    pugi::xml_node(test).append_child("system-out").text() = reasons.c_str();
}

} // namespace

std::string junit(json const& summary, std::span<std::string const> gates) {
  check_format(summary, summary_format);
  pugi::xml_document document;
  auto node = document.append_child("testsuite");
  node.append_attribute("name") = summary["run"]["run_id"].get<std::string>().c_str();
  node.append_attribute("timestamp") = summary["run"]["started"].get<std::string>().c_str();
  suite tests(node);
  for (auto const& entry : summary["cases"]) add_case(entry, tests);
  for (auto const& result : summary["results"])
    for (auto const& c : checks::all)
      if (c.name != checks::skipped.name) // a skipped case is one of `cases`
        add_check(summary, result, c, std::ranges::find(gates, c.name) != gates.end(), tests);
  tests.close();
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

} // namespace plateau
