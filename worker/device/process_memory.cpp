// SPDX-License-Identifier: Apache-2.0
#include "worker/device/process_memory.hpp"

#include <array>
#include <charconv>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>

namespace plateau {

namespace {

std::string_view read_status(std::array<char, 8192>& buffer) {
  int const fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  auto const size = fd < 0 ? -1 : read(fd, buffer.data(), buffer.size());
  if (fd >= 0) close(fd);
  if (size <= 0) throw std::runtime_error("cannot read /proc/self/status, which tells the resident set");
  return {buffer.data(), static_cast<std::size_t>(size)};
}

// A line is "VmRSS:\t  123456 kB".
std::int64_t bytes_of(std::string_view status, std::string_view key) {
  auto const at = status.find(key);
  auto const digits = at == status.npos ? at : status.find_first_of("0123456789", at + key.size());
  std::int64_t kib = 0;
  if (digits == status.npos ||
      std::from_chars(status.data() + digits, status.data() + status.size(), kib).ec != std::errc())
    throw std::runtime_error("/proc/self/status has no line " + std::string(key.substr(1)));
  return kib * 1024;
}

} // namespace

process_memory read_process_memory() {
  std::array<char, 8192> buffer;
  auto const status = read_status(buffer);
  return {bytes_of(status, "\nVmRSS:"), bytes_of(status, "\nRssAnon:")};
}

} // namespace plateau
