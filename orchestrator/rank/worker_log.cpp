// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/worker_log.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace plateau {

namespace {

constexpr std::size_t tail_length = 1024;

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    auto const n = write(file, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return; // a full disk: the run matters more than its log
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

} // namespace

worker_log::worker_log(std::filesystem::path const& file, descriptor pipe)
    : pipe_(std::move(pipe)), file_(open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
      room_(largest_file) {
  fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
  if (file_.get() >= 0) room_ -= lseek(file_.get(), 0, SEEK_END);
}

void worker_log::drain() {
  constexpr int most_reads = 16; // a flood must not keep the rank from looking at anything else
  std::array<char, 64 * 1024> chunk;
  for (int i = 0; i < most_reads && pipe_.get() >= 0; ++i) {
    auto const n = read(pipe_.get(), chunk.data(), chunk.size());
    if (n > 0)
      keep(chunk.data(), static_cast<std::size_t>(n));
    else if (n == 0)
      pipe_.reset();
    else if (errno != EINTR)
      return;
  }
}

void worker_log::keep(char const* text, std::size_t size) {
  tail_.append(text, size);
  if (tail_.size() > tail_length) tail_.erase(0, tail_.size() - tail_length);
  if (room_ <= 0 || file_.get() < 0) return;
  auto const fits = std::min(room_, static_cast<std::int64_t>(size));
  write_all(file_.get(), {text, static_cast<std::size_t>(fits)});
  room_ -= static_cast<std::int64_t>(size);
  if (room_ <= 0) write_all(file_.get(), "\n[plateau: this log is full; what else is printed is dropped]\n");
}

std::string worker_log::last_line() const {
  constexpr std::size_t longest = 160;
  auto text = tail_;
  text.erase(text.find_last_not_of(" \t\r\n") + 1);
  auto const start = text.rfind('\n');
  if (start != std::string::npos) text.erase(0, start + 1);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 32 || c > 126; }, '?');
  return text;
}

} // namespace plateau
