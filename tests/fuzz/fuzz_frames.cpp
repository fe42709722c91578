// SPDX-License-Identifier: Apache-2.0
// What a rank and a worker may receive. The first byte says how the rest is taken: as a stream of frames that comes in
// pieces of so many bytes, or (0) as the document of one frame.
#include "schemas/protocol.hpp"
#include "tests/fuzz/fuzzing.hpp"

#include <vector>

namespace plateau::fuzzing {

namespace {

// What is understood is sent again as something that is understood the same way.
template <class Read>
void read_and_send(std::vector<std::uint8_t> const& body, Read&& read) {
  try {
    auto const frame = protocol::to_frame(read(body));
    protocol::frame_buffer buffer;
    buffer.add(frame.data(), frame.size());
    auto const again = buffer.next();
    must(again && buffer.empty(), "a frame holds one document");
    must(protocol::to_frame(read(*again)) == frame, "a message survives being sent");
  } catch (format_error const& e) {
    must_be_readable(e.what());
  }
}

void read_document(std::vector<std::uint8_t> const& body) {
  read_and_send(body, protocol::command_of);
  read_and_send(body, protocol::event_of);
}

void read_stream(bytes stream, std::size_t piece) {
  protocol::frame_buffer buffer;
  try {
    for (taker t{stream}; !t.rest.empty();) {
      auto const some = t.some(piece);
      buffer.add(some.data(), some.size());
      while (auto const body = buffer.next()) read_document(*body);
    }
  } catch (format_error const& e) {
    must_be_readable(e.what());
  }
}

} // namespace

void fuzz_one(bytes input) {
  taker t{input};
  if (auto const piece = t.byte(); piece > 0)
    read_stream(t.rest, piece);
  else
    read_document({t.rest.begin(), t.rest.end()});
}

} // namespace plateau::fuzzing
