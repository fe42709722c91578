// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/preflight.hpp"

#include "orchestrator/analysis/fabric.hpp"
#include "orchestrator/rank/signals.hpp"
#include "schemas/codec.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

namespace plateau {

namespace {

std::vector<fabric_on_rank> gather(communicator& ranks, fabric_on_rank const& mine, char const* what) {
  std::vector<fabric_on_rank> all;
  for (auto const& text : ranks.all_gather(encode(mine).dump(), what))
    all.push_back(decode<fabric_on_rank>(json::parse(text)));
  return all;
}

bool stop_is_asked_for(communicator& ranks) {
  auto const answers = ranks.all_gather(requested_stop() == stop_request::none ? 0 : 1, "checking the fabric");
  return std::ranges::any_of(answers, [](std::int64_t asked) { return asked != 0; });
}

// Both steps on all ranks; the second only if the first went well on each of them.
fabric_record check(communicator& ranks, supervisor& worker, fabric_on_rank mine, worker_process::look const& look) {
  auto opened = worker.open_fabric(look);
  if (auto* nccl = std::get_if<nccl_info>(&opened))
    mine.nccl = std::move(*nccl);
  else
    mine.result.failure = std::get<fabric_failure>(std::move(opened));
  auto so_far = judge_fabric(gather(ranks, mine, "loading NCCL"));
  if (so_far.status != fabric_status::passed) return so_far;

  mine.result = worker.check_fabric(so_far.ranks.front().nccl->unique_id, ranks.size(), look);
  return judge_fabric(gather(ranks, mine, "checking the fabric"));
}

} // namespace

fabric_record check_fabric(communicator& ranks, supervisor& worker, rank_info const& here,
                           worker_process::look const& look) {
  auto record = check(ranks, worker, {here.rank, here.host, {}, {}}, look);
  worker.release();
  for (auto& on : record.ranks)
    if (on.nccl) on.nccl->unique_id.clear(); // whoever knows it could have joined
  if (stop_is_asked_for(ranks)) return {fabric_status::not_checked, "a stop was asked for", {}};
  return record;
}

} // namespace plateau
