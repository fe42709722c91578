// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/store/durable.hpp"

#include "schemas/crc32c.hpp"
#include "schemas/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace plateau {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void failed(char const* what, fs::path const& path, int error) {
  throw std::system_error(error, std::generic_category(), std::string(what) + " " + path.string());
}

class descriptor {
public:
  explicit descriptor(int fd) : fd_(fd) {}
  descriptor(descriptor const&) = delete;
  descriptor& operator=(descriptor const&) = delete;
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int close() { return ::close(std::exchange(fd_, -1)); }

private:
  int fd_;
};

// The folder that a file lies in, as a path that can be opened.
fs::path folder_of(fs::path const& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

fs::path temporary_name(fs::path const& path) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return folder_of(path) / ("." + path.filename().string() + "." + std::to_string(random()) + ".partial");
}

void write_all(int fd, std::span<std::uint8_t const> bytes, fs::path const& path) {
  while (!bytes.empty()) {
    auto const written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) failed("cannot write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

[[noreturn]] void unreadable(fs::path const& path, int error) {
  throw input_error(path.string() + ": cannot be read: " + std::generic_category().message(error));
}

int open_to_read(fs::path const& path) {
  auto const fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) unreadable(path, errno);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode))
    return fd; // a folder says so itself
  ::close(fd);
  throw input_error(path.string() + ": is a pipe or a device, which can be read only once; save it as a file first");
}

std::size_t size_of(int fd, fs::path const& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) unreadable(path, errno);
  return static_cast<std::size_t>(status.st_size);
}

// Fills `bytes`, unless the file ends before. Returns how many there were.
std::size_t read_some(int fd, std::span<std::uint8_t> bytes, fs::path const& path) {
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    auto const got = ::read(fd, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) unreadable(path, errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

void sync_path(fs::path const& path, int flags) {
  descriptor const opened(::open(path.c_str(), flags | O_CLOEXEC));
  if (opened.get() < 0) failed("cannot open", path, errno);
  if (::fsync(opened.get()) != 0) failed("cannot make durable", path, errno);
}

void write_and_sync(fs::path const& temporary, std::initializer_list<std::span<std::uint8_t const>> parts,
                    fs::path const& path) {
  descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.get() < 0) failed("cannot write", path, errno);
  for (auto const part : parts) write_all(file.get(), part, path);
  if (::fsync(file.get()) != 0) failed("cannot make durable", path, errno);
  if (file.close() != 0) failed("cannot write", path, errno);
}

void rename_durably(fs::path const& temporary, fs::path const& path) {
  if (std::rename(temporary.c_str(), path.c_str()) != 0) failed("cannot write", path, errno);
  sync_path(folder_of(path), O_RDONLY | O_DIRECTORY);
}

} // namespace

void write_durably(fs::path const& path, std::initializer_list<std::span<std::uint8_t const>> parts) {
  auto const temporary = temporary_name(path);
  try {
    write_and_sync(temporary, parts, path);
    rename_durably(temporary, path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_durably(fs::path const& path, std::span<std::uint8_t const> bytes) { write_durably(path, {bytes}); }

void write_durably(fs::path const& path, std::string_view text) {
  write_durably(path, std::span(reinterpret_cast<std::uint8_t const*>(text.data()), text.size()));
}

void publish(fs::path const& temporary, fs::path const& path) {
  sync_path(temporary, O_RDONLY);
  rename_durably(temporary, path);
}

void append(fs::path const& path, std::span<std::uint8_t const> bytes) {
  descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file.get() < 0) failed("cannot write", path, errno);
  write_all(file.get(), bytes, path);
  if (file.close() != 0) failed("cannot write", path, errno);
}

std::vector<std::uint8_t> read_file(fs::path const& path) {
  descriptor const file(open_to_read(path));
  std::vector<std::uint8_t> bytes(size_of(file.get(), path));
  bytes.resize(read_some(file.get(), bytes, path));
  return bytes;
}

std::string read_text(fs::path const& path) {
  auto const bytes = read_file(path);
  return {bytes.begin(), bytes.end()};
}

file_ends read_ends(fs::path const& path, std::size_t first, std::size_t last) {
  descriptor const file(open_to_read(path));
  file_ends ends{std::vector<std::uint8_t>(first), std::vector<std::uint8_t>(last), size_of(file.get(), path)};
  ends.first.resize(read_some(file.get(), ends.first, path));
  auto const begin = ends.size - std::min<std::uint64_t>(ends.size, last);
  if (::lseek(file.get(), static_cast<off_t>(begin), SEEK_SET) < 0) unreadable(path, errno);
  ends.last.resize(read_some(file.get(), ends.last, path));
  return ends;
}

std::uint32_t checksum_of_file(fs::path const& path, std::uint64_t size) {
  descriptor const file(open_to_read(path));
  std::vector<std::uint8_t> piece(std::size_t{1} << 20);
  std::uint32_t crc = 0;
  while (size > 0) {
    auto const got = read_some(file.get(), std::span(piece).first(std::min<std::uint64_t>(size, piece.size())), path);
    if (got == 0) break;
    crc = crc32c(std::span(piece).first(got), crc);
    size -= got;
  }
  return crc;
}

} // namespace plateau
