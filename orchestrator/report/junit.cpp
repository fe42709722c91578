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

bool has_gate(gates const& g, std::string_view check) { return std::ranges::find(g.checks, check) != g.checks.end(); }

void add_case(json const& entry, gates const& g, suite& tests) {
  auto const status = entry["status"].get<std::string>();
  auto const test = tests.add(entry["case_id"], "passed");
  if (status == "skipped" && !has_gate(g, checks::skipped.name))
    tests.skip(test, entry["reason"]);
  else if (status != "passed")
    tests.fail(test, status, entry["reason"]);
}

// The reasons that a list of the summary gives for a check of a case, in one text.
std::string reasons_in(json const& list, json const& id, std::string_view check) {
  std::string text;
  for (auto const& entry : list)
    if (entry["case_id"] == id && entry["check"] == check)
      text += (text.empty() ? "" : "; ") + entry["reason"].get<std::string>();
  return text;
}

void add_check(json const& summary, json const& id, check const& c, gates const& g, suite& tests) {
  auto const found = reasons_in(summary["findings"], id, c.name),
             not_made = reasons_in(summary["not_made"], id, c.name);
  auto test = tests.add(id, std::string(c.name));
  bool const gate = has_gate(g, c.name);
  if (gate && !found.empty())
    tests.fail(test, std::string(c.name), found);
  else if (gate && g.strict && !not_made.empty())
    tests.fail(test, std::string(c.name), not_made);
  else if (!not_made.empty())
    tests.skip(test, not_made);
  if (!gate && !found.empty()) test.append_child("system-out").text() = found.c_str();
}

// A case that nobody measured was not judged, but what is known of its memory may have given findings.
bool has_check(json const& summary, json const& entry, check const& c) {
  if (c.name == checks::skipped.name) return false; // add_case tells it
  auto const same = [&](json const& result) { return result["case_id"] == entry["case_id"]; };
  return std::ranges::any_of(summary["results"], same) ||
         !reasons_in(summary["findings"], entry["case_id"], c.name).empty();
}

std::string suite_name(json const& summary) {
  auto const run_id = summary["run"]["run_id"].get<std::string>();
  auto const rehearsal = summary.value("rehearsal", json());
  return rehearsal.is_null() ? run_id : run_id + " (rehearsal on " + rehearsal["gpu"].get<std::string>() + ")";
}

} // namespace

std::string junit(json const& summary, gates const& g) {
  check_format(summary, summary_format);
  pugi::xml_document document;
  auto node = document.append_child("testsuite");
  node.append_attribute("name") = suite_name(summary).c_str();
  node.append_attribute("timestamp") = summary["run"]["started"].get<std::string>().c_str();
  suite tests(node);
  for (auto const& entry : summary["cases"]) {
    add_case(entry, g, tests);
    for (auto const& c : checks::all)
      if (has_check(summary, entry, c)) add_check(summary, entry["case_id"], c, g, tests);
  }
  tests.close();
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

} // namespace plateau
