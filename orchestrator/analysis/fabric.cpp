// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/fabric.hpp"

#include "orchestrator/analysis/outcome.hpp"
#include "schemas/codec.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

namespace plateau {

namespace {

using rank_numbers = std::vector<std::int64_t>;

constexpr double bytes_per_mib = 1 << 20;

std::string text_of(char const* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Ranks by what they have in common, in the order of the first of each.
class grouped_ranks {
public:
  void add(std::string const& common, std::int64_t rank) {
    auto const known = std::ranges::find(groups_, common, &std::pair<std::string, rank_numbers>::first);
    if (known == groups_.end())
      groups_.push_back({common, {rank}});
    else
      known->second.push_back(rank);
  }
  std::vector<std::pair<std::string, rank_numbers>> const& groups() const { return groups_; }

private:
  std::vector<std::pair<std::string, rank_numbers>> groups_;
};

// "ranks 0-1 on node1, rank 2 on node2"
std::string ranks_on_hosts(std::vector<fabric_on_rank> const& all, rank_numbers const& numbers) {
  grouped_ranks by_host;
  for (auto const rank : numbers) by_host.add(all[static_cast<std::size_t>(rank)].host, rank);
  std::string text;
  for (auto const& [host, ranks] : by_host.groups())
    text += (text.empty() ? "" : ", ") + rank_list(ranks) + " on " + host;
  return text;
}

std::vector<fabric_failure> failures_of(std::vector<fabric_on_rank> const& all) {
  std::vector<fabric_failure> failures;
  for (auto const& on : all)
    if (on.result.failure) failures.push_back(*on.result.failure);
  return failures;
}

// The healthy ranks would wait for the others in vain, so this is looked at before any of them begins.
void compare_versions(std::vector<fabric_on_rank>& all) {
  grouped_ranks by_version;
  for (auto const& on : all)
    if (on.nccl) by_version.add(on.nccl->version, on.rank);
  if (by_version.groups().size() < 2 || !failures_of(all).empty()) return;
  for (auto& on : all) {
    on.result.failure = fabric_failure{fabric_step::loading, "NCCL " + on.nccl->version + " from " + on.nccl->library +
                                                                 ", which is not the version of every rank"};
  }
}

std::string settings_text(std::vector<fabric_on_rank> const& all) {
  grouped_ranks by_setting;
  for (auto const& on : all)
    if (on.nccl)
      for (auto const& [name, value] : on.nccl->settings)
        by_setting.add(name.starts_with("NCCL_") ? name + "=" + value : name + " " + value, on.rank);
  std::string text;
  for (auto const& [setting, ranks] : by_setting.groups())
    text += (text.empty() ? "" : ", ") + setting + (ranks.size() == all.size() ? "" : " (" + rank_list(ranks) + ")");
  return text.empty() ? "no NCCL_* variable is set" : "in effect: " + text;
}

std::string what_to_look_at(fabric_step step) {
  switch (step) {
  case fabric_step::loading: return "LD_LIBRARY_PATH and the Torch of each host, which have to give one NCCL";
  case fabric_step::comparing:
    return "the GPUs of these ranks and their links (nvidia-smi nvlink -e, Xid errors in dmesg, ACS and IOMMU on PCIe; "
           "NCCL_P2P_DISABLE=1 tells whether it is that)";
  case fabric_step::initialising:
  case fabric_step::reducing: break;
  }
  return "the interface between the hosts (NCCL_SOCKET_IFNAME, firewalls), InfiniBand (ibstat, NCCL_IB_HCA, "
         "NCCL_IB_GID_INDEX; NCCL_IB_DISABLE=1 tells whether it is that), the size of /dev/shm in a container, ulimit "
         "-l";
}

// The first step that failed anywhere is the cause; a rank that fails later suffers from it.
std::string reason_of(std::vector<fabric_on_rank> const& all) {
  auto const failures = failures_of(all);
  auto const step = std::ranges::min(failures, {}, &fabric_failure::step).step;
  grouped_ranks by_reason;
  for (auto const& on : all)
    if (on.result.failure) by_reason.add(on.result.failure->reason, on.rank);
  std::string text;
  for (auto const& [reason, ranks] : by_reason.groups())
    text += (text.empty() ? "" : "; ") + ranks_on_hosts(all, ranks) + ": " + reason;
  return text + "; " + settings_text(all) + "; look at " + what_to_look_at(step);
}

// The slowest rank's bandwidth at the i-th size; nothing unless every rank has one.
std::optional<fabric_totals::size> slowest_at(fabric_record const& record, std::size_t i) {
  std::optional<fabric_totals::size> slowest;
  auto const world = static_cast<std::int64_t>(record.ranks.size());
  for (auto const& on : record.ranks) {
    if (i >= on.result.all_reduces.size()) return std::nullopt;
    auto const& timing = on.result.all_reduces[i];
    auto const reached = bandwidth_of(timing, world);
    if (!reached) return std::nullopt;
    if (!slowest || reached->bus < slowest->slowest.bus) slowest = {timing.bytes, *reached, on.rank};
  }
  return slowest;
}

} // namespace

std::string why_no_fabric(std::span<rank_info const> ranks) {
  if (ranks.size() < 2) return "there is one rank alone";
  std::map<std::string, std::int64_t> owners;
  for (auto const& r : ranks) {
    auto const rank = "rank " + std::to_string(r.rank) + " on " + r.host;
    if (!r.device) return "the worker of " + rank + " did not come up";
    if (r.device->kind != "cuda") return rank + " has no GPU";
    if (r.device->pretended.value_or(false)) return "the GPU of " + rank + " is a pretend one";
    if (!r.device->uuid) return "the GPU of " + rank + " does not tell its UUID";
    auto const [owner, first] = owners.emplace(r.host_id + " " + *r.device->uuid, r.rank);
    if (!first)
      return "ranks " + std::to_string(owner->second) + " and " + std::to_string(r.rank) + " on " + r.host +
             " share the GPU " + *r.device->uuid;
  }
  return "";
}

fabric_record judge_fabric(std::vector<fabric_on_rank> ranks) {
  compare_versions(ranks);
  if (failures_of(ranks).empty()) return {fabric_status::passed, "", std::move(ranks)};
  auto reason = reason_of(ranks);
  return {fabric_status::failed, std::move(reason), std::move(ranks)};
}

std::optional<bandwidth> bandwidth_of(all_reduce_timing const& timing, std::int64_t ranks) {
  if (timing.elapsed_ns <= 0 || timing.repetitions <= 0 || ranks < 2) return std::nullopt;
  auto const n = static_cast<double>(ranks);
  auto const bytes = static_cast<double>(timing.bytes) * static_cast<double>(timing.repetitions);
  auto const algorithm = bytes / static_cast<double>(timing.elapsed_ns); // bytes per ns: GB/s
  return bandwidth{algorithm, algorithm * 2 * (n - 1) / n};
}

fabric_totals totals_of(fabric_record const& record) {
  fabric_totals totals;
  for (std::size_t i = 0; auto const at = slowest_at(record, i); ++i) totals.sizes.push_back(*at);
  for (auto const& on : record.ranks)
    if (on.result.used_before && on.result.used_last)
      totals.nccl_bytes = std::max(totals.nccl_bytes.value_or(0), *on.result.used_last - *on.result.used_before);
  return totals;
}

std::string told(fabric_record const& record) {
  if (record.status == fabric_status::not_checked) return "fabric: not checked: " + record.reason;
  if (record.status == fabric_status::failed) return "fabric: failed: " + record.reason;
  auto const totals = totals_of(record);
  std::string text = "fabric: NCCL " + record.ranks.front().nccl.value_or(nccl_info{}).version;
  if (!totals.sizes.empty()) {
    auto const& largest = totals.sizes.back();
    text += ", all-reduce of " + text_of("%.4g MiB", static_cast<double>(largest.bytes) / bytes_per_mib) + " at " +
            text_of("%.4g GB/s bus bandwidth", largest.slowest.bus) + " (slowest: rank " +
            std::to_string(largest.rank) + ")";
  }
  if (totals.nccl_bytes)
    text +=
        ", NCCL takes " + text_of("%.4g MiB", static_cast<double>(*totals.nccl_bytes) / bytes_per_mib) + " of each GPU";
  return text;
}

json fabric_entry(fabric_record const& record) {
  auto const totals = totals_of(record);
  auto sizes = json::array();
  for (auto const& at : totals.sizes)
    sizes.push_back({{"bytes", at.bytes},
                     {"algbw_gb_per_s", at.slowest.algorithm},
                     {"busbw_gb_per_s", at.slowest.bus},
                     {"slowest_rank", at.rank}});
  auto out = encode(record);
  out["all_reduce"] = std::move(sizes);
  out["nccl_bytes"] = totals.nccl_bytes ? json(*totals.nccl_bytes) : json(nullptr);
  out["told"] = told(record);
  return out;
}

} // namespace plateau
