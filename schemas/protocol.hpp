// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schemas/case_result.hpp"
#include "schemas/device.hpp"
#include "schemas/fabric.hpp"
#include "schemas/job.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

/// What a rank and its worker say to each other: frames of a length (32 bits, little endian) and one CBOR
/// document.
///
///     rank -> worker   hello     prepare          start                               stop
///     worker -> rank       device_info   ready          memory_point...  case_result
///
/// A worker that has greeted can check the fabric instead, together with those of all other ranks:
///
///     rank -> worker   open_fabric     check_fabric
///     worker -> rank            nccl_info            fabric_result
///
/// Or compile a package, and keep it in the cache, without running it:
///
///     rank -> worker   compile
///     worker -> rank          package
///
/// A failure may stand in the place of any event. After one that answers prepare or start the case is over
/// and the worker takes the next prepare; a worker that cannot go on exits.
namespace plateau::protocol {

inline constexpr std::int64_t version = 1;
inline constexpr int socket_fd = 3;   ///< the worker's end of the socket
inline constexpr int progress_fd = 4; ///< the memory file of `progress`
inline constexpr std::uint32_t largest_frame = 1u << 30;

struct hello {
  std::int64_t version = protocol::version;
  std::string run_id;
  std::int64_t rank = 0, local_rank = 0, local_size = 1;
  job run; ///< travels as JSON; the device may still be "auto" and the dtype absent
};
struct prepare {
  case_id id;
};
struct start {};
struct stop {};
struct open_fabric {}; ///< load NCCL; rank 0's worker also makes a unique id
struct check_fabric {
  std::string unique_id; ///< as rank 0's worker gave it
  std::int64_t ranks = 1;
};
struct compile {
  std::string mode; ///< one that runs a package
};
using command = std::variant<hello, prepare, start, stop, open_fabric, check_fabric, compile>;

struct ready {};
struct failure {
  case_status status = case_status::failed;
  std::string reason;
};
struct package {
  package_info info;
  std::string file; ///< its path in the cache
  std::int64_t bytes = 0;
};
using event = std::variant<device_info, ready, memory_point, case_result, failure, nccl_info, fabric_result, package>;

/// A whole frame, length included.
std::vector<std::uint8_t> to_frame(command const& c);
std::vector<std::uint8_t> to_frame(event const& e);

/// The document of a frame. Throws format_error when it is not one of the protocol.
command command_of(std::vector<std::uint8_t> const& body);
event event_of(std::vector<std::uint8_t> const& body);

/// Takes bytes as they come and gives whole frames. Throws format_error as soon as a frame claims to be
/// longer than largest_frame.
class frame_buffer {
public:
  void add(std::uint8_t const* bytes, std::size_t size);
  std::optional<std::vector<std::uint8_t>> next(); ///< a frame's document, once it is complete
  bool empty() const { return bytes_.size() == taken_; }

private:
  std::vector<std::uint8_t> bytes_;
  std::size_t taken_ = 0;
};

/// Writes all of a frame to a socket. Throws std::system_error; EPIPE when the other side is gone (no
/// signal).
void send_frame(int fd, std::vector<std::uint8_t> const& frame);

/// Waits for the next frame. Nothing when the other side has closed between two frames; throws format_error
/// when it closed within one.
std::optional<std::vector<std::uint8_t>> receive_frame(int fd, frame_buffer& buffer);

} // namespace plateau::protocol
