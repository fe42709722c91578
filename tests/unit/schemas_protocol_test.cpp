// SPDX-License-Identifier: Apache-2.0
#include "schemas/protocol.hpp"
#include "tests/unit/schemas_samples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wfree-nonheap-object" // g++ 12 sees one where a variant is destroyed

namespace plateau::protocol {
namespace {

using testing::HasSubstr;
using bytes = std::vector<std::uint8_t>;

bytes body_of(bytes const& frame) {
  frame_buffer buffer;
  buffer.add(frame.data(), frame.size());
  auto body = buffer.next();
  EXPECT_TRUE(body);
  EXPECT_TRUE(buffer.empty());
  return body.value_or(bytes{});
}

template <class T>
T through(T const& message) {
  if constexpr (std::is_constructible_v<command, T>)
    return std::get<T>(command_of(body_of(to_frame(command(message)))));
  else
    return std::get<T>(event_of(body_of(to_frame(event(message)))));
}

hello greeting() { return {version, "run", 3, 1, 2, parse_job(R"({"hidden": 8, "env": {"A": "1"}})", "demo.json")}; }

bytes cbor(json const& document) { return to_cbor(document); }

std::string refusal_of(bytes const& body) {
  try {
    command_of(body);
  } catch (format_error const& e) {
    return e.what();
  }
  return "accepted";
}

class socket_pair {
public:
  socket_pair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()), 0); }
  ~socket_pair() {
    close_end(0);
    close_end(1);
  }
  int end(std::size_t i) const { return ends_[i]; }
  void close_end(std::size_t i) {
    if (ends_[i] >= 0) ::close(ends_[i]);
    ends_[i] = -1;
  }

private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(protocol, every_message_arrives_as_it_was_sent) {
  auto const h = through(greeting());
  EXPECT_EQ(h.run_id, "run");
  EXPECT_EQ(h.rank, 3);
  EXPECT_EQ(h.local_rank, 1);
  EXPECT_EQ(h.local_size, 2);
  EXPECT_EQ(to_json(h.run), to_json(greeting().run));
  EXPECT_FALSE(h.run.dtype) << "the device decides it later";
  EXPECT_EQ(through(prepare{{"arena", 4, 2}}).id, (case_id{"arena", 4, 2}));
  through(start{});
  through(stop{});
  through(ready{});
  auto const f = through(failure{case_status::out_of_memory, "no room"});
  EXPECT_EQ(f.status, case_status::out_of_memory);
  EXPECT_EQ(f.reason, "no room");
  EXPECT_EQ(encode(through(*passed_result().device)), encode(*passed_result().device));
  EXPECT_EQ(encode(through(passed_result().measured->soak[1])), encode(passed_result().measured->soak[1]));
  EXPECT_EQ(encode(through(passed_result())), encode(passed_result()));
}

TEST(protocol, carries_the_fabric_check_there_and_back) {
  through(open_fabric{});
  auto const asked = through(check_fabric{"00ff", 16});
  EXPECT_EQ(asked.unique_id, "00ff");
  EXPECT_EQ(asked.ranks, 16);
  nccl_info const nccl{"2.28.9", "libnccl.so.2", "00ff", {{"NCCL_DEBUG", "INFO"}}};
  EXPECT_EQ(encode(through(nccl)), encode(nccl));
  fabric_result found;
  EXPECT_EQ(encode(through(found)), encode(found)) << "nothing was reached";
  found = {fabric_failure{fabric_step::comparing, "wrong"}, 1, 2, 3, 4, 5, {{64, 20, 9}}};
  EXPECT_EQ(encode(through(found)), encode(found));
}

TEST(protocol, carries_what_is_to_be_compiled_and_the_package) {
  EXPECT_EQ(through(compile{"compiled_aten"}).mode, "compiled_aten");
  package const made{
      {"key", false, 2.5, "a GPU", "pretend GPU", "sm_90, 132 SMs", "node0", "2.11.0"}, "/cache/key.pt2", 7};
  auto const told = through(made);
  EXPECT_EQ(encode(told.info), encode(made.info));
  EXPECT_EQ(told.file, made.file);
  EXPECT_EQ(told.bytes, 7);
}

TEST(protocol, a_reason_that_is_no_utf8_still_arrives) {
  EXPECT_EQ(through(failure{case_status::failed, "cut \xc3"}).reason, "cut \xef\xbf\xbd");
}

TEST(protocol, refuses_what_is_no_message) {
  EXPECT_THAT(refusal_of(cbor({{"type", "helo"}, {"body", json::object()}})), HasSubstr("\"helo\" is no message"));
  EXPECT_THAT(refusal_of(cbor({{"type", "ready"}, {"body", json::object()}})),
              HasSubstr("no message")); // an event
  EXPECT_THAT(refusal_of(cbor({{"type", 1}, {"body", json::object()}})), HasSubstr("without type and body"));
  EXPECT_THAT(refusal_of(cbor({{"type", "stop"}})), HasSubstr("without type and body"));
  EXPECT_THAT(refusal_of(cbor(json::array())), HasSubstr("without type and body"));
  EXPECT_THAT(refusal_of(cbor({{"type", "prepare"}, {"body", 5}})), HasSubstr("needs an object"));
  EXPECT_THAT(refusal_of({}), HasSubstr("ends too early"));
  EXPECT_THAT(refusal_of(bytes(64, 0xff)), HasSubstr("not valid CBOR"));
}

TEST(protocol, refuses_a_case_id_that_is_none) {
  json const body{{"case", {{"mode", "../x"}, {"concurrency", 1}, {"repeat", 0}}}};
  EXPECT_THAT(refusal_of(cbor({{"type", "prepare"}, {"body", body}})), HasSubstr("no case id"));
}

TEST(protocol, says_so_when_rank_and_worker_are_of_different_builds) {
  EXPECT_THAT(refusal_of(cbor({{"type", "hello"}, {"body", {{"version", 2}}}})), HasSubstr("one build"));
  EXPECT_THAT(refusal_of(cbor({{"type", "hello"}, {"body", json::object()}})), HasSubstr("one build"));
}

TEST(protocol, refuses_a_greeting_whose_job_is_wrong) {
  auto document = from_cbor(body_of(to_frame(command(greeting()))));
  document["body"]["job"]["hidden"] = 0;
  EXPECT_THAT(refusal_of(cbor(document)), HasSubstr("/hidden"));
  document["body"]["job"] = "\xff";
  EXPECT_THAT(refusal_of(cbor(document)), HasSubstr("a job is a JSON object"));
}

TEST(protocol, survives_flipped_bits_in_a_frame) {
  std::mt19937 random(2);
  for (auto const& frame : {to_frame(command(greeting())), to_frame(event(passed_result()))})
    for (int round = 0; round < 2'000; ++round) {
      auto damaged = frame;
      for (auto flips = random() % 3 + 1; flips > 0; --flips) flip(damaged, random);
      frame_buffer buffer;
      try {
        buffer.add(damaged.data(), damaged.size());
        auto const body = buffer.next();
        if (!body) continue;
        if (round % 2)
          command_of(*body);
        else
          event_of(*body);
      } catch (format_error const&) {
      }
    }
}

TEST(frame_buffer, gives_whole_frames_from_single_bytes) {
  bytes both = to_frame(command(prepare{{"eager", 2, 0}}));
  auto const second = to_frame(command(stop{}));
  both.insert(both.end(), second.begin(), second.end());
  frame_buffer buffer;
  std::vector<command> commands;
  for (auto const byte : both) {
    buffer.add(&byte, 1);
    while (auto body = buffer.next()) commands.push_back(command_of(*body));
  }
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(std::get<prepare>(commands[0]).id.text(), "eager.c2");
  EXPECT_TRUE(std::holds_alternative<stop>(commands[1]));
  EXPECT_TRUE(buffer.empty());
}

TEST(frame_buffer, gives_several_frames_that_came_at_once) {
  bytes all;
  for (int i = 0; i < 3; ++i) {
    auto const frame = to_frame(event(ready{}));
    all.insert(all.end(), frame.begin(), frame.end());
  }
  frame_buffer buffer;
  buffer.add(all.data(), all.size());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(buffer.next());
  EXPECT_FALSE(buffer.next());
}

TEST(frame_buffer, refuses_a_length_of_2_gib_at_its_head) {
  frame_buffer buffer;
  bytes const head{0x00, 0x00, 0x00, 0x80};
  buffer.add(head.data(), head.size());
  EXPECT_THROW(buffer.next(), format_error);
}

TEST(sockets, carry_a_frame_larger_than_their_buffers) {
  socket_pair sockets;
  auto large = passed_result();
  large.measured->start_ns = large.measured->latency_ns = {std::vector<std::int64_t>(300'000, 7), {7}};
  std::thread sender([&] { send_frame(sockets.end(0), to_frame(event(large))); });
  frame_buffer buffer;
  auto const body = receive_frame(sockets.end(1), buffer);
  sender.join();
  ASSERT_TRUE(body);
  EXPECT_EQ(std::get<case_result>(event_of(*body)).measured->latency_ns, large.measured->latency_ns);
}

TEST(sockets, tell_an_end_between_frames_from_one_within) {
  socket_pair whole;
  send_frame(whole.end(0), to_frame(command(stop{})));
  whole.close_end(0);
  frame_buffer buffer;
  EXPECT_TRUE(receive_frame(whole.end(1), buffer));
  EXPECT_FALSE(receive_frame(whole.end(1), buffer));

  socket_pair half;
  auto const frame = to_frame(command(stop{}));
  send_frame(half.end(0), bytes(frame.begin(), frame.end() - 1));
  half.close_end(0);
  frame_buffer rest;
  EXPECT_THROW(receive_frame(half.end(1), rest), format_error);
}

TEST(sockets, that_nobody_reads_are_an_error_and_no_signal) {
  socket_pair sockets;
  sockets.close_end(1);
  EXPECT_THROW(send_frame(sockets.end(0), to_frame(command(stop{}))), std::system_error);
}

} // namespace
} // namespace plateau::protocol
