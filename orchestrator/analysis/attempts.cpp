// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/analysis/attempts.hpp"

#include "orchestrator/analysis/outcome.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace plateau {

namespace {

// The attempts of the run that a rank is of, and its rank there.
std::pair<std::vector<run_attempt> const*, std::int64_t> own_attempts(run_info const& info, std::int64_t rank) {
  if (!info.merged_from) return {info.attempts ? &*info.attempts : nullptr, rank};
  auto const next = std::ranges::upper_bound(*info.merged_from, rank, {}, &run_source::first_rank);
  if (next == info.merged_from->begin()) return {nullptr, rank};
  return {&std::prev(next)->attempts, rank - std::prev(next)->first_rank};
}

rank_place const* known_place(run_info const& info, std::int64_t rank, std::int64_t attempt) {
  auto const [attempts, there] = own_attempts(info, rank);
  if (attempts == nullptr) return nullptr;
  auto const found = std::ranges::find(*attempts, attempt, &run_attempt::attempt);
  if (found == attempts->end() || there >= std::ssize(found->places)) return nullptr;
  return &found->places[static_cast<std::size_t>(there)];
}

std::string name_of_place(rank_place const& place) {
  return place.device + (place.uuid ? " " + *place.uuid : "") + " on " + place.host;
}

bool same_device(rank_place const& a, rank_place const& b) {
  if (a.uuid || b.uuid) return a.uuid == b.uuid;
  return a.host == b.host && a.device == b.device;
}

std::string other_versions(rank_place const& before, std::string_view in_before, rank_place const& now,
                           std::string_view in_now) {
  auto const version = [](rank_place const& place, std::string const& of) {
    auto const found = place.versions.find(of);
    return found == place.versions.end() ? std::string("none") : found->second;
  };
  std::set<std::string> of;
  for (auto const* place : {&before, &now})
    for (auto const& [name, unused] : place->versions) of.insert(name);
  std::string text;
  for (auto const& name : of) {
    auto const a = version(before, name), b = version(now, name);
    if (a != b)
      text += (text.empty() ? "" : "; ") + name + " " + a + " " + std::string(in_before) + ", " + b + " " +
              std::string(in_now);
  }
  return text;
}

// The cases that the ranks of one run measured, by the attempt that did.
std::map<std::int64_t, std::vector<std::string>> cases_by_attempt(run_record const& run, run_source const& source) {
  std::map<std::int64_t, std::vector<std::string>> cases;
  for (auto const& record : run.cases)
    for (auto rank = source.first_rank; rank < source.first_rank + source.ranks; ++rank) {
      auto const& result = record.by_rank[static_cast<std::size_t>(rank)];
      if (!result || !result->measured) continue;
      cases[attempt_of(*result)].push_back(record.id.text());
      break;
    }
  return cases;
}

void add_moves(run_record const& run, run_source const& source, std::vector<moved_cases>& all) {
  if (source.attempts.size() < 2) return;
  auto const cases = cases_by_attempt(run, source);
  if (cases.size() < 2) return;
  auto const places = [&](std::int64_t attempt) {
    std::vector<rank_place> at;
    for (std::int64_t rank = 0; rank < source.ranks; ++rank)
      at.push_back(place_at(run.info, source.first_rank + rank, attempt));
    return at;
  };
  auto const& [first, first_cases] = *cases.begin();
  for (auto other = std::next(cases.begin()); other != cases.end(); ++other) {
    auto const what = moved_ranks(places(first), "in attempt " + std::to_string(first), places(other->first),
                                  "in attempt " + std::to_string(other->first));
    if (!what.empty()) all.push_back({source.run_id, first, other->first, first_cases, other->second, what});
  }
}

std::string list_of(std::vector<std::string> const& ids) {
  constexpr std::size_t most = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, ids.size()); ++i) text += (i > 0 ? ", " : "") + ids[i];
  if (ids.size() > most) text += " and " + std::to_string(ids.size() - most) + " more";
  return text;
}

} // namespace

rank_place place_of(rank_info const& rank) {
  rank_place place{rank.host, rank.host_id, "", {}, {}};
  if (!rank.device) return place;
  place.device = rank.device->name;
  place.uuid = rank.device->uuid;
  place.versions = rank.device->versions;
  return place;
}

std::vector<run_attempt> attempts_of(run_info const& info) {
  if (info.attempts) return *info.attempts;
  run_attempt only{1, info.started, info.launcher, info.command_line, info.versions, {}};
  for (auto const& rank : info.ranks) only.places.push_back(place_of(rank));
  return {only};
}

rank_place place_at(run_info const& info, std::int64_t rank, std::int64_t attempt) {
  if (auto const* known = known_place(info, rank, attempt)) return *known;
  return place_of(info.ranks[static_cast<std::size_t>(rank)]);
}

std::int64_t attempt_of(case_result const& result) { return result.origin_attempt.value_or(result.attempt); }

std::string machine_of(run_info const& info, case_result const& result) {
  auto const& rank = info.ranks[static_cast<std::size_t>(result.rank)];
  auto const* known = known_place(info, result.rank, attempt_of(result));
  return (known != nullptr ? known->host_id : rank.host_id) + (rank.origin ? " in " + rank.origin->run_id : "");
}

bool ran_together(rank_info const& a, rank_info const& b) {
  if (!a.origin || !b.origin) return a.origin == b.origin;
  return a.origin->run_id == b.origin->run_id;
}

std::string moved(rank_place const& before, std::string_view in_before, rank_place const& now,
                  std::string_view in_now) {
  if (before.device.empty() || now.device.empty()) return ""; // it measured nothing there
  if (same_device(before, now)) return other_versions(before, in_before, now, in_now);
  return name_of_place(before) + " " + std::string(in_before) + ", " + name_of_place(now) + " " + std::string(in_now);
}

std::string moved_ranks(std::span<rank_place const> before, std::string_view in_before, std::span<rank_place const> now,
                        std::string_view in_now) {
  constexpr int most_told = 4;
  int found = 0;
  std::string text;
  for (std::size_t rank = 0; rank < std::min(before.size(), now.size()); ++rank) {
    auto const what = moved(before[rank], in_before, now[rank], in_now);
    if (what.empty() || ++found > most_told) continue;
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(rank) + ": " + what;
  }
  if (found > most_told) text += "; and " + std::to_string(found - most_told) + " more";
  return text;
}

std::vector<moved_cases> moves_of(run_record const& run) {
  std::vector<moved_cases> all;
  if (run.info.attempts)
    add_moves(run, {run.info.run_id, 0, std::ssize(run.info.ranks), *run.info.attempts, {}, {}}, all);
  for (auto const& source : run.info.merged_from.value_or(std::vector<run_source>{})) add_moves(run, source, all);
  return all;
}

std::string told(moved_cases const& m) {
  return "not comparable in " + m.run_id + ": " + list_of(m.cases) + " (attempt " + std::to_string(m.attempt) +
         ") with " + list_of(m.others) + " (attempt " + std::to_string(m.other) + "): " + m.what;
}

} // namespace plateau
