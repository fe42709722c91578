// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/case_group.hpp"

#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/outcome.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace plateau {

namespace {

constexpr std::int64_t no_sample = -1;
constexpr std::int64_t no_number = -9223372036854775806; // netCDF's own default for int64
constexpr double no_real = 9.969209968386869e36;         // netCDF's own default for double
constexpr std::uint64_t largest_chunk = 131072;          // samples: 1 MiB, HDF5's chunk cache

using row_of = std::function<std::optional<std::int64_t>(case_result const&, std::size_t column)>;

/// What the small datasets of a group are written with: its scales, and the results of the ranks present.
struct small_writer {
  h5::node const& group;
  h5::node const& rank;
  std::vector<case_result const*> results;

  // A dataset [rank, columns], or [rank] without a scale for the columns.
  void numbers(std::string const& name, h5::meaning const& m, h5::node const* columns, std::size_t width,
               row_of const& value) const {
    std::vector<std::uint64_t> size{results.size()};
    if (columns != nullptr) size.push_back(width);
    std::vector<std::int64_t> values;
    for (auto const* result : results)
      for (std::size_t column = 0; column < width; ++column)
        values.push_back(value(*result, column).value_or(no_number));
    auto const dataset = h5::create_numbers(group, name, h5::fixed(size), m, no_number);
    h5::write(dataset, std::vector<std::uint64_t>(size.size(), 0), size, values);
    attach(dataset, columns);
  }

  void attach(h5::node const& dataset, h5::node const* columns) const {
    std::array<h5::node const*, 2> const scales{&rank, columns};
    h5::attach_scales(dataset, std::span(scales).first(columns != nullptr ? 2 : 1));
  }
};

std::vector<case_result const*> results_of(case_record const& record, std::vector<std::int64_t> const& ranks) {
  std::vector<case_result const*> results;
  for (auto const rank : ranks) results.push_back(&*record.by_rank[static_cast<std::size_t>(rank)]);
  return results;
}

std::vector<memory_point> const& curve_of(case_result const& result) {
  return result.measured ? result.measured->soak : result.soak_so_far;
}

// A subgroup's own `rank`, equal to its parent's, so that it can be opened without it.
h5::node repeat_ranks(h5::node const& group, std::vector<std::int64_t> const& ranks) {
  auto rank = h5::create_coordinate(group, "rank", h5::fixed({ranks.size()}), {"rank", "1"});
  h5::write(rank, {0}, {ranks.size()}, ranks);
  return rank;
}

h5::node text_coordinate(h5::node const& group, std::string const& name, std::vector<std::string> const& texts,
                         std::string_view long_name) {
  auto coordinate = h5::write_texts(group, name, texts, long_name);
  h5::make_scale(coordinate, name);
  return coordinate;
}

} // namespace

case_group::case_group(h5::node const& file, run_info const& info, job const& run, case_id const& id)
    : info_(info), threads_(static_cast<std::uint64_t>(id.concurrency)),
      requests_(static_cast<std::uint64_t>(run.requests_per_worker)), group_(h5::create_group(file, id.text())) {}

void case_group::create_rows() {
  auto const world = info_.ranks.size();
  auto& r = rows_;
  r.rank = h5::create_coordinate(group_, "rank", {{0}, world, {world}}, {"rank", "1"});
  r.thread = h5::create_dimension(group_, "thread", threads_);
  r.request = h5::create_dimension(group_, "request", requests_);
  h5::shape const samples{{0, threads_, requests_}, world, {1, 1, std::min(requests_, largest_chunk)}};
  r.latency_ns =
      h5::create_numbers(group_, "latency_ns", samples,
                         {"latency of a request, from its submission to its result being ready", "ns"}, no_sample);
  r.start_ns = h5::create_numbers(group_, "start_ns", samples,
                                  {"submission of a request, since the rank's gate opened", "ns"}, no_sample);
  r.count = h5::create_numbers(group_, "count", {{0, threads_}, world, {world, threads_}},
                               {"timed requests of a stream thread", "1"}, no_number);
  std::array<h5::node const*, 3> const scales{&r.rank, &r.thread, &r.request};
  h5::attach_scales(r.latency_ns, scales);
  h5::attach_scales(r.start_ns, scales);
  h5::attach_scales(r.count, std::span(scales).first(2));
}

void case_group::add(case_result const& result) {
  if (!result.measured && result.soak_so_far.empty()) return;
  if (ranks_.empty()) create_rows();
  auto const row = ranks_.size();
  ranks_.push_back(result.rank);
  h5::set_rows(rows_.rank, {row + 1});
  h5::set_rows(rows_.latency_ns, {row + 1, threads_, requests_});
  h5::set_rows(rows_.start_ns, {row + 1, threads_, requests_});
  h5::set_rows(rows_.count, {row + 1, threads_});
  h5::write(rows_.rank, {row}, {1}, std::span(&result.rank, 1));
  std::vector<std::int64_t> counts(threads_, 0);
  for (std::size_t thread = 0; result.measured && thread < threads_; ++thread) {
    auto const& latency = result.measured->latency_ns[thread];
    counts[thread] = static_cast<std::int64_t>(latency.size());
    if (latency.empty()) continue;
    h5::write(rows_.latency_ns, {row, thread, 0}, {1, 1, latency.size()}, latency);
    h5::write(rows_.start_ns, {row, thread, 0}, {1, 1, latency.size()}, result.measured->start_ns[thread]);
  }
  h5::write(rows_.count, {row, 0}, {1, threads_}, counts);
}

void case_group::finish(case_record const& record) {
  write_attributes(record);
  if (ranks_.empty()) return;
  write_per_rank(record);
  write_counters(record);
  write_soak(record);
  write_attribution(record);
}

void case_group::write_attributes(case_record const& record) {
  auto const verdict = verdict_of(record);
  h5::set_attribute(group_, "case_id", record.id.text());
  h5::set_attribute(group_, "mode", record.id.mode);
  h5::set_attribute(group_, "concurrency", record.id.concurrency);
  h5::set_attribute(group_, "repeat", record.id.repeat);
  h5::set_attribute(group_, "status", name_of(verdict.status));
  h5::set_attribute(group_, "reason", verdict.reason);
}

void case_group::write_per_rank(case_record const& record) {
  small_writer const w{group_, rows_.rank, results_of(record, ranks_)};
  auto const of_measurement = [](std::int64_t measurement::*member) {
    return [member](case_result const& r, std::size_t) {
      return r.measured ? std::optional((*r.measured).*member) : std::nullopt;
    };
  };
  w.numbers("wall_ns", {"from the gate to the last result", "ns"}, nullptr, 1, of_measurement(&measurement::wall_ns));
  w.numbers("gate_ns", {"CLOCK_MONOTONIC when the gate opened; comparable only on one host", "ns"}, nullptr, 1,
            of_measurement(&measurement::gate_ns));
  std::vector<double> harness;
  std::vector<std::string> hosts;
  for (auto const* result : w.results) {
    harness.push_back(result->measured ? result->measured->harness_ns : no_real);
    hosts.push_back(place_at(info_, result->rank, attempt_of(*result)).host);
  }
  auto const dataset = h5::create_numbers(
      group_, "harness_ns", h5::fixed({harness.size()}),
      {"the harness's own cost of a request: the timed loop over a request that does nothing", "ns"}, no_real);
  h5::write(dataset, {0}, {harness.size()}, harness);
  w.attach(dataset, nullptr);
  w.attach(h5::write_texts(group_, "hostname", hosts, "host of the rank"), nullptr);
}

void case_group::write_counters(case_record const& record) {
  small_writer const w{group_, rows_.rank, results_of(record, ranks_)};
  auto const point = text_coordinate(group_, "point", {"pre", "post"}, "before and after the timed window");
  for (auto const& field : counter_fields)
    w.numbers(std::string(field.name), {field.meaning, field.unit}, &point, 2,
              [&](case_result const& r, std::size_t column) -> std::optional<std::int64_t> {
                if (!r.measured || r.measured->counters_unavailable) return std::nullopt;
                return (column == 0 ? r.measured->pre : r.measured->post).*field.member;
              });
  w.numbers("outside_bytes", {"device memory in use that the allocator does not know of", "bytes"}, &point, 2,
            [](case_result const& r, std::size_t column) -> std::optional<std::int64_t> {
              if (!r.measured) return std::nullopt;
              return column == 0 ? r.measured->outside_pre_bytes : r.measured->outside_post_bytes;
            });
}

void case_group::write_soak(case_record const& record) {
  auto const results = results_of(record, ranks_);
  std::size_t windows = 0;
  for (auto const* result : results) windows = std::max(windows, curve_of(*result).size());
  if (windows == 0) return;
  auto const group = h5::create_group(group_, "soak");
  auto const rank = repeat_ranks(group, ranks_);
  auto const window = h5::create_coordinate(group, "window", h5::fixed({windows}),
                                            {"soak windows completed; 0 is before the first", "1"});
  std::vector<std::int64_t> numbers(windows);
  for (std::size_t i = 0; i < windows; ++i) numbers[i] = static_cast<std::int64_t>(i);
  h5::write(window, {0}, {windows}, numbers);

  small_writer const w{group, rank, results};
  auto const series = [&](std::string const& name, h5::meaning const& m, auto&& value_of_point) {
    w.numbers(name, m, &window, windows, [&](case_result const& r, std::size_t i) -> std::optional<std::int64_t> {
      auto const& curve = curve_of(r);
      return i < curve.size() ? std::optional<std::int64_t>(value_of_point(curve[i])) : std::nullopt;
    });
  };
  series("requests", {"requests completed by all stream threads", "1"},
         [](memory_point const& p) { return p.requests; });
  series("elapsed_ns", {"since the soak began", "ns"}, [](memory_point const& p) { return p.elapsed_ns; });
  for (auto const& field : counter_fields)
    series(std::string(field.name), {field.meaning, field.unit},
           [&](memory_point const& p) { return p.allocator.*field.member; });
  series("outside_bytes", {"device memory in use that the allocator does not know of", "bytes"},
         [](memory_point const& p) { return p.outside_bytes; });
  series("host_resident_bytes", {"resident set of the worker", "bytes"},
         [](memory_point const& p) { return p.host_resident_bytes; });
}

void case_group::write_attribution(case_record const& record) {
  auto const results = results_of(record, ranks_);
  auto const tracked = [](case_result const& r) -> attribution const* {
    return r.measured && r.measured->tracked ? &*r.measured->tracked : nullptr;
  };
  if (std::ranges::none_of(results, [&](auto const* r) { return tracked(*r) != nullptr; })) return;
  auto const group = h5::create_group(group_, "attribution");
  auto const rank = repeat_ranks(group, ranks_);
  small_writer const w{group, rank, results};
  auto const of_window = [&](std::string const& name, h5::meaning const& m, auto&& value) {
    w.numbers(name, m, nullptr, 1, [&](case_result const& r, std::size_t) {
      return tracked(r) != nullptr ? std::optional<std::int64_t>(value(*tracked(r))) : std::nullopt;
    });
  };
  of_window("requests", {"requests of the tracked window", "1"}, [](attribution const& a) { return a.requests; });
  of_window("counted_allocation_events", {"by the allocator's counters: what the operators add up to", "1"},
            [](attribution const& a) { return a.post.allocation_events - a.pre.allocation_events; });
  of_window("counted_free_events", {"by the allocator's counters: what the operators add up to", "1"},
            [](attribution const& a) { return a.post.free_events - a.pre.free_events; });

  std::vector<std::string> names; // in the order of first appearance
  for (auto const* result : results)
    if (auto const* a = tracked(*result))
      for (auto const& op : a->ops)
        if (std::ranges::find(names, op.op) == names.end()) names.push_back(op.op);
  if (names.empty()) return;
  auto const op_scale = text_coordinate(group, "op", names, "path of operator names, outermost first");
  auto const per_op = [&](std::string const& name, h5::meaning const& m, std::int64_t op_events::*member) {
    w.numbers(name, m, &op_scale, names.size(),
              [&](case_result const& r, std::size_t column) -> std::optional<std::int64_t> {
                auto const* a = tracked(r);
                if (a == nullptr) return std::nullopt;
                auto const found = std::ranges::find(a->ops, names[column], &op_events::op);
                return found == a->ops.end() ? 0 : (*found).*member;
              });
  };
  per_op("allocation_events", {"allocations", "1"}, &op_events::allocation_events);
  per_op("allocated_bytes", {"bytes allocated, after rounding", "bytes"}, &op_events::allocated_bytes);
  per_op("free_events", {"frees", "1"}, &op_events::free_events);
  per_op("freed_bytes", {"bytes freed, after rounding", "bytes"}, &op_events::freed_bytes);
}

} // namespace plateau
