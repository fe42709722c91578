// SPDX-License-Identifier: Apache-2.0
#include "schemas/protocol.hpp"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>
#include <system_error>
#include <unistd.h>

namespace plateau::protocol {

template <class Visit>
void describe(prepare& x, Visit&& visit) {
  visit("case", x.id);
}
template <class Visit>
void describe(start&, Visit&&) {}
template <class Visit>
void describe(stop&, Visit&&) {}
template <class Visit>
void describe(open_fabric&, Visit&&) {}
template <class Visit>
void describe(check_fabric& x, Visit&& visit) {
  visit("unique_id", x.unique_id);
  visit("ranks", x.ranks);
}
template <class Visit>
void describe(compile& x, Visit&& visit) {
  visit("mode", x.mode);
}
template <class Visit>
void describe(ready&, Visit&&) {}
template <class Visit>
void describe(failure& x, Visit&& visit) {
  visit("status", x.status);
  visit("reason", x.reason);
}
template <class Visit>
void describe(package& x, Visit&& visit) {
  visit("info", x.info);
  visit("file", x.file);
  visit("bytes", x.bytes);
}

namespace {

// hello carries a job, which has a table of its own.
struct hello_document {
  std::int64_t version = 0, rank = 0, local_rank = 0, local_size = 1;
  std::string run_id;
  json run;

  template <class Visit>
  friend void describe(hello_document& x, Visit&& visit) {
    visit("version", x.version);
    visit("run_id", x.run_id);
    visit("rank", x.rank);
    visit("local_rank", x.local_rank);
    visit("local_size", x.local_size);
    visit("job", x.run);
  }
};

hello hello_of(json const& document) {
  auto const spoken = document.is_object() ? document.value("version", json()) : json();
  if (spoken != json(version))
    throw format_error("the rank speaks protocol " + spoken.dump(-1, ' ', false, json::error_handler_t::replace) +
                       ", this worker " + std::to_string(version) + "; use plateau and plateau-worker of one build");
  auto const d = decode<hello_document>(document);
  try {
    auto run = parse_job(d.run.dump(-1, ' ', false, json::error_handler_t::replace), "job");
    return {d.version, d.run_id, d.rank, d.local_rank, d.local_size, std::move(run)};
  } catch (job_error const& e) {
    throw format_error(e.what());
  }
}

json to_document(hello const& h) {
  return encode(hello_document{h.version, h.rank, h.local_rank, h.local_size, h.run_id, to_json(h.run)});
}
template <class T>
json to_document(T const& x) {
  return encode(x);
}

template <class T>
T from_document(json const& document) {
  if constexpr (std::is_same_v<T, hello>) {
    return hello_of(document);
  } else if constexpr (std::is_same_v<T, case_result>) {
    return read_case_result(document);
  } else if constexpr (std::is_same_v<T, prepare>) {
    auto const asked = decode<prepare>(document);
    return {parse_case_id(asked.id.text())};
  } else {
    return decode<T>(document);
  }
}

template <class T>
struct type_name;
// clang-format off
template <> struct type_name<hello> { static constexpr auto text = "hello"; };
template <> struct type_name<prepare> { static constexpr auto text = "prepare"; };
template <> struct type_name<start> { static constexpr auto text = "start"; };
template <> struct type_name<stop> { static constexpr auto text = "stop"; };
template <> struct type_name<open_fabric> { static constexpr auto text = "open_fabric"; };
template <> struct type_name<check_fabric> { static constexpr auto text = "check_fabric"; };
template <> struct type_name<compile> { static constexpr auto text = "compile"; };
template <> struct type_name<device_info> { static constexpr auto text = "device_info"; };
template <> struct type_name<ready> { static constexpr auto text = "ready"; };
template <> struct type_name<memory_point> { static constexpr auto text = "memory_point"; };
template <> struct type_name<case_result> { static constexpr auto text = "case_result"; };
template <> struct type_name<failure> { static constexpr auto text = "failure"; };
template <> struct type_name<nccl_info> { static constexpr auto text = "nccl_info"; };
template <> struct type_name<fabric_result> { static constexpr auto text = "fabric_result"; };
template <> struct type_name<package> { static constexpr auto text = "package"; };
// clang-format on

template <class Variant>
std::vector<std::uint8_t> frame_of(Variant const& message) {
  auto const document = std::visit(
      [](auto const& x) {
        return json{{"type", type_name<std::decay_t<decltype(x)>>::text}, {"body", to_document(x)}};
      },
      message);
  std::vector<std::uint8_t> frame(sizeof(std::uint32_t));
  json::to_cbor(document, frame);
  auto const length = frame.size() - sizeof(std::uint32_t);
  if (length > largest_frame) throw format_error("a frame of " + std::to_string(length) + " bytes is over the limit");
  for (std::size_t i = 0; i < sizeof(std::uint32_t); ++i) frame[i] = static_cast<std::uint8_t>(length >> (8 * i));
  return frame;
}

template <class Variant, std::size_t I = 0>
Variant message_of(std::string const& type, json const& body) {
  if constexpr (I == std::variant_size_v<Variant>) {
    throw format_error("\"" + type + "\" is no message of the protocol");
  } else {
    using T = std::variant_alternative_t<I, Variant>;
    if (type == type_name<T>::text) return from_document<T>(body);
    return message_of<Variant, I + 1>(type, body);
  }
}

template <class Variant>
Variant read_message(std::vector<std::uint8_t> const& bytes) {
  auto const document = from_cbor(bytes);
  if (!document.is_object() || !document.contains("type") || !document["type"].is_string() ||
      !document.contains("body"))
    throw format_error("a frame without type and body");
  return message_of<Variant>(document["type"].get<std::string>(), document["body"]);
}

} // namespace

std::vector<std::uint8_t> to_frame(command const& c) { return frame_of(c); }
std::vector<std::uint8_t> to_frame(event const& e) { return frame_of(e); }
command command_of(std::vector<std::uint8_t> const& body) { return read_message<command>(body); }
event event_of(std::vector<std::uint8_t> const& body) { return read_message<event>(body); }

void frame_buffer::add(std::uint8_t const* bytes, std::size_t size) {
  if (taken_ > 0) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }
  bytes_.insert(bytes_.end(), bytes, bytes + size);
}

std::optional<std::vector<std::uint8_t>> frame_buffer::next() {
  constexpr auto head = sizeof(std::uint32_t);
  auto const there = bytes_.size() - taken_;
  if (there < head) return std::nullopt;
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < head; ++i) length |= std::uint32_t{bytes_[taken_ + i]} << (8 * i);
  if (length > largest_frame)
    throw format_error("a frame claims " + std::to_string(length) + " bytes; the limit is " +
                       std::to_string(largest_frame));
  if (there - head < length) return std::nullopt;
  auto const begin = bytes_.begin() + static_cast<std::ptrdiff_t>(taken_ + head);
  taken_ += head + length;
  return std::vector<std::uint8_t>(begin, begin + length);
}

void send_frame(int fd, std::vector<std::uint8_t> const& frame) {
  for (std::size_t sent = 0; sent < frame.size();) {
    auto const n = ::send(fd, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::system_error(errno, std::generic_category(), "cannot send to the other side");
    sent += static_cast<std::size_t>(n);
  }
}

std::optional<std::vector<std::uint8_t>> receive_frame(int fd, frame_buffer& buffer) {
  std::vector<std::uint8_t> chunk(64 * 1024);
  while (true) {
    if (auto frame = buffer.next()) return frame;
    auto const n = ::recv(fd, chunk.data(), chunk.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::system_error(errno, std::generic_category(), "cannot receive from the other side");
    if (n == 0 && buffer.empty()) return std::nullopt;
    if (n == 0) throw format_error("the other side closed within a frame");
    buffer.add(chunk.data(), static_cast<std::size_t>(n));
  }
}

} // namespace plateau::protocol
