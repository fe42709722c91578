// SPDX-License-Identifier: Apache-2.0
#include "schemas/case_result.hpp"

#include <algorithm>

namespace plateau {

namespace {

void check_measurement(measurement const& m, case_id const& id) {
  auto const threads = static_cast<std::size_t>(id.concurrency);
  if (m.latency_ns.size() != threads || m.start_ns.size() != threads)
    throw format_error("/measured: series of " + std::to_string(m.latency_ns.size()) + " stream threads; " + id.text() +
                       " has " + std::to_string(id.concurrency));
  for (std::size_t t = 0; t < threads; ++t) {
    if (m.latency_ns[t].empty())
      throw format_error("/measured: stream thread " + std::to_string(t) + " has no request");
    if (m.latency_ns[t].size() != m.start_ns[t].size())
      throw format_error("/measured: stream thread " + std::to_string(t) + " has more starts than latencies or fewer");
    auto const negative = [](std::int64_t ns) { return ns < 0; };
    if (std::ranges::any_of(m.latency_ns[t], negative) || std::ranges::any_of(m.start_ns[t], negative))
      throw format_error("/measured: stream thread " + std::to_string(t) + " has a negative time");
  }
  if (m.tracked && m.tracked->requests < 1)
    throw format_error("/measured/attribution/requests: " + std::to_string(m.tracked->requests) +
                       "; the tracked window has at least 1");
  if (m.wall_ns < 0) throw format_error("/measured/wall_ns: negative");
}

} // namespace

case_result read_case_result(json const& document) {
  check_format(document, case_result_format);
  auto result = decode<case_result>(document);
  if (result.rank < 0) throw format_error("/rank: negative");
  if (parse_case_id(result.id.text()) != result.id) throw format_error("/case: is no case id");
  if ((result.status == case_status::passed) != result.measured.has_value())
    throw format_error("/measured: present exactly when the case passed; here the case is " +
                       std::string(name_of(result.status)));
  if (result.measured) check_measurement(*result.measured, result.id);
  return result;
}

} // namespace plateau
