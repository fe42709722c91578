// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_id.hpp"
#include "schemas/codec.hpp"
#include "schemas/counters.hpp"
#include "schemas/device.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace plateau {

inline constexpr format_version case_result_format{"plateau.case_result", 1, 1};

enum class case_status { passed, failed, out_of_memory, timed_out, crashed, skipped, missing };

constexpr auto names(case_status) {
  return std::array{std::pair{case_status::passed, "passed"},
                    std::pair{case_status::failed, "failed"},
                    std::pair{case_status::out_of_memory, "out_of_memory"},
                    std::pair{case_status::timed_out, "timed_out"},
                    std::pair{case_status::crashed, "crashed"},
                    std::pair{case_status::skipped, "skipped"},
                    std::pair{case_status::missing, "missing"}};
}

/// Memory at a quiet point: device idle, no request in flight.
struct memory_point {
  std::int64_t requests = 0;   ///< completed by all stream threads since the soak began
  std::int64_t elapsed_ns = 0; ///< since the soak began
  counters allocator;
  std::int64_t outside_bytes = 0;       ///< in use on the device, but not by the allocator
  std::int64_t host_resident_bytes = 0; ///< the worker's resident set

  template <class Visit>
  friend void describe(memory_point& x, Visit&& visit) {
    visit("requests", x.requests);
    visit("elapsed_ns", x.elapsed_ns);
    visit("allocator", x.allocator);
    visit("outside_bytes", x.outside_bytes);
    visit("host_resident_bytes", x.host_resident_bytes);
  }
};

/// What one operator allocated and freed over the tracked window.
struct op_events {
  std::string op; ///< path of operator names, outermost first: "aten::linear/aten::addmm"; "" is none
  std::int64_t allocation_events = 0,
               allocated_bytes = 0; ///< bytes after rounding, as the allocator counts them
  std::int64_t free_events = 0, freed_bytes = 0;

  template <class Visit>
  friend void describe(op_events& x, Visit&& visit) {
    visit("op", x.op);
    visit("allocation_events", x.allocation_events);
    visit("allocated_bytes", x.allocated_bytes);
    visit("free_events", x.free_events);
    visit("freed_bytes", x.freed_bytes);
  }
};

/// The tracked soak window. Its parts add up to post - pre exactly.
struct attribution {
  std::int64_t requests = 0; ///< of all stream threads
  counters pre, post;
  std::vector<op_events> ops;

  template <class Visit>
  friend void describe(attribution& x, Visit&& visit) {
    visit("requests", x.requests);
    visit("pre", x.pre);
    visit("post", x.post);
    visit("ops", x.ops);
  }
};

/// The mode's output against the program in float64 on the CPU; the worst over stream threads, before and
/// after the timed window.
struct output_check {
  bool checked = false;
  std::optional<std::string> why_not;
  double relative_l2 = 0, relative_max = 0, tolerance = 0;
  std::vector<std::string> digests; ///< one per stream thread: CRC-32C of the output's bytes

  template <class Visit>
  friend void describe(output_check& x, Visit&& visit) {
    visit("checked", x.checked);
    visit("why_not", x.why_not);
    visit("relative_l2", x.relative_l2);
    visit("relative_max", x.relative_max);
    visit("tolerance", x.tolerance);
    visit("digests", x.digests);
  }
};

/// The compiled package that ran.
struct package_info {
  std::string key; ///< its name in the cache
  bool from_cache = false;
  double compile_seconds = 0;                  ///< 0 when it came from the cache
  std::optional<std::string> compiled_on = {}; ///< the device that the compiler saw; a pretend GPU says so

  template <class Visit>
  friend void describe(package_info& x, Visit&& visit) {
    visit("key", x.key);
    visit("from_cache", x.from_cache);
    visit("compile_seconds", x.compile_seconds);
    visit("compiled_on", x.compiled_on);
  }
};

/// What was measured of a case, as the worker saw it. Raw: nothing here is a summary.
struct measurement {
  /// [stream thread][request]; nanoseconds of CLOCK_MONOTONIC: start since the gate opened, submission to
  /// result ready.
  std::vector<std::vector<std::int64_t>> start_ns, latency_ns;
  std::int64_t gate_ns = 0; ///< CLOCK_MONOTONIC when the gate opened: comparable only on one host
  std::int64_t wall_ns = 0; ///< gate to the last thread's last result
  counters pre, post;       ///< around the timed window
  std::int64_t outside_pre_bytes = 0, outside_post_bytes = 0;
  std::optional<std::string> counters_unavailable; ///< why the counters cannot tell
  std::vector<memory_point> soak;                  ///< one before the first window, then one after each
  std::optional<attribution> tracked;
  double harness_ns = 0; ///< the loop's own cost per request: the same loop over noop, one thread

  template <class Visit>
  friend void describe(measurement& x, Visit&& visit) {
    visit("start_ns", x.start_ns);
    visit("latency_ns", x.latency_ns);
    visit("gate_ns", x.gate_ns);
    visit("wall_ns", x.wall_ns);
    visit("pre", x.pre);
    visit("post", x.post);
    visit("outside_pre_bytes", x.outside_pre_bytes);
    visit("outside_post_bytes", x.outside_post_bytes);
    visit("counters_unavailable", x.counters_unavailable);
    visit("soak", x.soak);
    visit("attribution", x.tracked);
    visit("harness_ns", x.harness_ns);
  }
};

/// One rank's raw result of one case. Stored as CBOR: the same bytes that the gather carries.
struct case_result {
  std::string schema = case_result_format.text();
  std::string run_id;
  case_id id;
  std::int64_t rank = 0;
  std::int64_t attempt = 1;                        ///< of the run at this case
  std::optional<std::int64_t> origin_attempt = {}; ///< of a merged run: the attempt of the run that the rank is from
  case_status status = case_status::missing;
  std::string reason;  ///< in words; empty when passed
  std::string started; ///< UTC, RFC 3339
  double seconds = 0;  ///< prepare to result
  std::vector<std::string> warnings;
  std::optional<device_info> device;
  std::optional<std::string> arena_kind; ///< "planned" or "graph", for the arena modes
  bool compile_applied = false;          ///< true only if a compiled package ran
  std::optional<package_info> package;
  std::optional<output_check> outputs;
  std::optional<measurement> measured;   ///< present when passed
  std::vector<memory_point> soak_so_far; ///< when the case did not pass: the curve until then

  template <class Visit>
  friend void describe(case_result& x, Visit&& visit) {
    visit("schema", x.schema);
    visit("run_id", x.run_id);
    visit("case", x.id);
    visit("rank", x.rank);
    visit("attempt", x.attempt);
    visit("origin_attempt", x.origin_attempt);
    visit("status", x.status);
    visit("reason", x.reason);
    visit("started", x.started);
    visit("seconds", x.seconds);
    visit("warnings", x.warnings);
    visit("device", x.device);
    visit("arena_kind", x.arena_kind);
    visit("compile_applied", x.compile_applied);
    visit("package", x.package);
    visit("output_check", x.outputs);
    visit("measured", x.measured);
    visit("soak_so_far", x.soak_so_far);
  }
};

/// Throws format_error when the document is not a case result, is of a newer major version, or contradicts
/// itself (a passed case without a measurement, series of different shapes, a negative latency).
case_result read_case_result(json const& document);

} // namespace plateau
