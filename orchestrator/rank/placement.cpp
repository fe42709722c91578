// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/placement.hpp"

#include "orchestrator/analysis/outcome.hpp"

#include <map>
#include <utility>
#include <vector>

namespace plateau {

namespace {

using ranks_of_gpu = std::vector<rank_info const*>;

// By the first rank of each, so that the order is that of the ranks.
std::vector<ranks_of_gpu> by_gpu(std::span<rank_info const> ranks) {
  std::vector<ranks_of_gpu> groups;
  std::map<std::pair<std::string, std::string>, std::size_t> place;
  for (auto const& r : ranks) {
    if (!r.device || !r.device->uuid) continue;
    auto const [at, is_new] = place.try_emplace({r.host_id, *r.device->uuid}, groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].push_back(&r);
  }
  return groups;
}

std::string told(ranks_of_gpu const& ranks) {
  std::vector<std::int64_t> numbers;
  std::string lists;
  for (auto const* r : ranks) {
    numbers.push_back(r->rank);
    lists += (lists.empty() ? "" : ", ") + std::string("rank ") + std::to_string(r->rank) + ": " +
             (r->device->visible_list ? "CUDA_VISIBLE_DEVICES=" + *r->device->visible_list
                                      : std::string("CUDA_VISIBLE_DEVICES is not set"));
  }
  return rank_list(numbers) + " on " + ranks.front()->host + " have the same GPU " + *ranks.front()->device->uuid +
         " (" + lists + ")";
}

} // namespace

std::string shared_gpus(std::span<rank_info const> ranks) {
  std::string text;
  for (auto const& group : by_gpu(ranks))
    if (group.size() > 1) text += (text.empty() ? "" : ", ") + told(group);
  return text;
}

} // namespace plateau
