// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/outcome.hpp"

#include <algorithm>
#include <map>

namespace plateau {

namespace {

case_status status_on(std::optional<case_result> const& result) {
  return result ? result->status : case_status::missing;
}

// The later, the worse.
int severity(case_status status) {
  switch (status) {
  case case_status::passed: return 0;
  case case_status::skipped: return 1;
  case case_status::missing: return 2;
  case case_status::failed: return 3;
  case case_status::out_of_memory: return 4;
  case case_status::timed_out: return 5;
  case case_status::crashed: return 6;
  }
  return 7;
}

std::string rank_list(std::vector<std::size_t> const& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    auto last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (i > 0 ? "," : "") + std::to_string(ranks[i]);
    if (last > i) text += "-" + std::to_string(ranks[last]);
    i = last;
  }
  return text;
}

} // namespace

case_status overall_status(case_record const& c) {
  auto worst = case_status::passed;
  if (c.by_rank.empty()) return case_status::missing;
  for (auto const& result : c.by_rank)
    if (severity(status_on(result)) > severity(worst)) worst = status_on(result);
  return worst;
}

std::string overall_reason(case_record const& c) {
  std::map<std::string, std::vector<std::size_t>> ranks_by_reason;
  for (std::size_t rank = 0; rank < c.by_rank.size(); ++rank) {
    auto const status = status_on(c.by_rank[rank]);
    if (status == case_status::passed) continue;
    auto reason = c.by_rank[rank] ? c.by_rank[rank]->reason : std::string();
    ranks_by_reason[reason.empty() ? std::string(name_of(status)) : reason].push_back(rank);
  }
  std::string text;
  for (auto const& [reason, ranks] : ranks_by_reason) {
    if (!text.empty()) text += "; ";
    bool const everywhere = ranks.size() == c.by_rank.size();
    text += everywhere ? reason : rank_list(ranks) + ": " + reason;
  }
  return text;
}

exit_code exit_code_of(run_record const& record) {
  bool all_passed = true;
  for (auto const& c : record.cases) {
    for (auto const& result : c.by_rank) {
      auto const status = status_on(result);
      if (status == case_status::missing) return exit_code::incomplete;
      all_passed = all_passed && (status == case_status::passed || status == case_status::skipped);
    }
  }
  return all_passed ? exit_code::good : exit_code::not_passed;
}

} // namespace plateau
