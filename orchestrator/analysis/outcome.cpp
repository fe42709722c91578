// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/outcome.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace plateau {

namespace {

constexpr std::array gravest_first{case_status::crashed, case_status::out_of_memory, case_status::timed_out,
                                   case_status::failed,  case_status::missing,       case_status::skipped};

// "rank 3", "ranks 0-2,5"
// What did not pass, each reason once with its ranks; the ranks are left out when all say the same.
std::string reasons_of(case_record const& record) {
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> reasons;
  for (std::size_t rank = 0; rank < record.by_rank.size(); ++rank) {
    auto const& result = record.by_rank[rank];
    if (status_on(result) == case_status::passed) continue;
    auto const reason = reason_on(result);
    auto const same = std::ranges::find(reasons, reason, &std::pair<std::string, std::vector<std::int64_t>>::first);
    if (same == reasons.end())
      reasons.push_back({reason, {static_cast<std::int64_t>(rank)}});
    else
      same->second.push_back(static_cast<std::int64_t>(rank));
  }
  if (reasons.size() == 1 && reasons[0].second.size() == record.by_rank.size()) return reasons[0].first;
  std::string text;
  for (auto const& [reason, ranks] : reasons) text += (text.empty() ? "" : "; ") + rank_list(ranks) + ": " + reason;
  return text;
}

} // namespace

std::string rank_list(std::span<std::int64_t const> ranks) {
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

case_status status_on(std::optional<case_result> const& result) {
  return result ? result->status : case_status::missing;
}

std::string reason_on(std::optional<case_result> const& result) { return result ? result->reason : "no result"; }

case_verdict verdict_of(case_record const& record) {
  for (auto const grave : gravest_first)
    if (std::ranges::find(record.by_rank, grave, status_on) != record.by_rank.end()) return {grave, reasons_of(record)};
  if (record.by_rank.empty()) return {case_status::missing, "no rank"};
  return {case_status::passed, ""};
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
