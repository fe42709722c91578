// SPDX-License-Identifier: Apache-2.0
#include "worker/compile/package.hpp"

#include "schemas/codec.hpp"
#include "schemas/host.hpp"
#include "worker/compile/child.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace plateau {

extern std::string_view const compile_script; // compile_package.py

namespace {

namespace fs = std::filesystem;

// The files of one package in the cache.
struct entry {
  fs::path package;  // the package
  fs::path about;    // its spec, size and checksum: written last, so that it vouches for the package
  fs::path log;      // what the compiler said
  fs::path lock;     // held while compiling
  fs::path building; // owned by whoever holds the lock
};

std::string environment(char const* name, std::string const& fallback) {
  auto const* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

fs::path cache_folder() {
  if (auto const cache = environment("PLATEAU_CACHE", ""); !cache.empty()) return cache;
  if (auto const cache = environment("XDG_CACHE_HOME", ""); !cache.empty()) return fs::path(cache) / "plateau";
  if (auto const home = environment("HOME", ""); !home.empty()) return fs::path(home) / ".cache" / "plateau";
  throw compile_error("there is no place to keep compiled packages; set PLATEAU_CACHE to a folder");
}

std::string read_file(fs::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(fs::path const& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw compile_error(path.string() + " cannot be written; set PLATEAU_CACHE to a folder that can");
}

// FNV-1a, 64 bits, in hexadecimal.
std::string digest(std::string_view bytes) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char const byte : bytes) hash = (hash ^ byte) * 0x100000001b3;
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, hash >>= 4) *digit = "0123456789abcdef"[hash & 15];
  return text;
}

std::string compiler_version(fs::path const& folder) {
  auto name = (folder / "compiler-version-XXXXXX").string();
  int const file = mkstemp(name.data());
  if (file < 0) throw compile_error(folder.string() + " cannot be written; set PLATEAU_CACHE to a folder that can");
  close(file);
  std::string text;
  try {
    run_child({environment("CXX", "g++"), "--version"}, {}, name);
    text = read_file(name);
  } catch (std::system_error const&) { // no compiler: the compilation will say so in its own words
  }
  std::error_code ignored;
  fs::remove(name, ignored);
  return text.substr(0, text.find('\n'));
}

// Variables that change what Inductor makes.
std::set<std::string> compiler_variables() {
  static constexpr std::array<std::string_view, 4> prefixes{"TORCHINDUCTOR_", "AOT_INDUCTOR_", "AOTINDUCTOR_", "CXX="};
  std::set<std::string> found;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::ranges::any_of(prefixes, [&](auto p) { return std::string_view(*variable).starts_with(p); }))
      found.insert(*variable);
  return found;
}

// A part to read, and a digest of all that changes the package.
std::string key_of(package_spec const& spec, fs::path const& folder) {
  std::string all = codec::encode(spec).dump() + std::string(compile_script) + compiler_version(folder);
  for (auto const& variable : compiler_variables()) all += '\n' + variable;
  return spec.program + "-" + spec.dtype + "-h" + std::to_string(spec.hidden) + "-b" + std::to_string(spec.batch) +
         "-s" + std::to_string(spec.seq_len) + "-" + spec.device + "-" + digest(all);
}

// Does what needs the cache's folder.
template <class Work>
auto usable(Work const& work) try {
  return work();
} catch (fs::filesystem_error const& error) {
  throw compile_error("the package cache cannot be used: " + std::string(error.what()) +
                      "; set PLATEAU_CACHE to a folder that can be written");
}

entry entry_of(package_spec const& spec) {
  return usable([&]() -> entry {
    auto const folder = fs::absolute(cache_folder());
    fs::create_directories(folder);
    auto const key = key_of(spec, folder);
    return {folder / (key + ".pt2"), folder / (key + ".json"), folder / (key + ".log"), folder / (key + ".lock"),
            folder / (key + ".building")};
  });
}

// All that the package is made from, in words.
json description_of(package_spec const& spec) {
  auto description = codec::encode(spec);
  description.erase("twin");
  return description;
}

// What vouches for the package; nothing when there is none, it is not whole, or it is another's under this name.
std::optional<compiled_package> find(package_spec const& spec, entry const& e) try {
  auto const about = json::parse(read_file(e.about), nullptr, false);
  if (!about.is_object() || about.value("package", json()) != description_of(spec) ||
      about.value("fnv1a64", "") != digest(read_file(e.package)))
    return std::nullopt;
  auto info = decode<package_info>(about.value("info", json()));
  info.from_cache = true;
  info.compile_seconds = 0;
  return compiled_package{e.package, std::move(info)};
} catch (format_error const&) { // an older version's
  return std::nullopt;
}

// Held as long as it lives, by one process of the node at a time.
class exclusive_lock {
public:
  explicit exclusive_lock(fs::path const& path) : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (fd_ >= 0 && flock(fd_, LOCK_EX) != 0)
      if (errno != EINTR) {
        close(fd_);
        fd_ = -1;
      }
    if (fd_ < 0) throw compile_error(path.string() + " cannot be locked: " + std::generic_category().message(errno));
  }
  ~exclusive_lock() { close(fd_); }
  exclusive_lock(exclusive_lock const&) = delete;
  exclusive_lock& operator=(exclusive_lock const&) = delete;

private:
  int fd_;
};

// Tells a listener that something is going on, and that it is over.
class announcement {
public:
  explicit announcement(std::function<void(bool)> const& listener) : listener_(listener) {
    if (listener_) listener_(true);
  }
  ~announcement() {
    if (listener_) listener_(false);
  }
  announcement(announcement const&) = delete;
  announcement& operator=(announcement const&) = delete;

private:
  std::function<void(bool)> const& listener_;
};

// The script's own reason, else the last line that says anything.
std::string reason_in(std::string const& log) {
  static constexpr std::string_view mark = "reason: ";
  if (auto const at = log.rfind(mark); at != std::string::npos)
    return log.substr(at + mark.size(), log.find('\n', at) - at - mark.size());
  auto const end = log.find_last_not_of(" \n");
  if (end == std::string::npos) return "it said nothing";
  auto const before = log.rfind('\n', end);
  auto const begin = before == std::string::npos ? 0 : before + 1;
  return log.substr(begin, end - begin + 1);
}

void run_compiler(package_spec const& spec, entry const& e, fs::path const& made,
                  std::map<std::string, std::string> variables) {
  auto const script = e.building / "compile_package.py", twin = e.building / (spec.program + ".py"),
             spec_file = e.building / "spec.json", python = fs::path(environment("PLATEAU_PYTHON", PLATEAU_PYTHON));
  write_file(script, compile_script);
  write_file(twin, spec.twin);
  write_file(spec_file, codec::encode(spec).dump(2));
  variables["TORCHINDUCTOR_CACHE_DIR"] = e.package.parent_path() / "inductor";
  int status = 0;
  try {
    status = run_child({python, script, spec_file, twin, made}, variables, e.log);
  } catch (std::system_error const& error) {
    throw compile_error("the package compiler cannot be started: " + std::string(error.what()) +
                        "; set PLATEAU_PYTHON to a python that has torch " + spec.torch);
  }
  if (status != 0 || !fs::exists(made))
    throw compile_error("the package could not be compiled: " + reason_in(read_file(e.log)) +
                        " (the compiler's log: " + e.log.string() + ")");
}

// Compiles into a folder of its own and moves what came out to its place, the word that vouches for it last.
package_info compile(package_spec const& spec, entry const& e, compile_site const& here) {
  auto const begin = std::chrono::steady_clock::now();
  fs::remove_all(e.building); // left by one that was killed
  fs::create_directories(e.building);
  auto const made = e.building / "package.pt2", about = e.building / "about.json";
  run_compiler(spec, e, made, here.environment);
  auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  package_info info{.key = e.package.stem().string(),
                    .from_cache = false,
                    .compile_seconds = seconds,
                    .compiled_on = here.device,
                    .compiled_by = here.by,
                    .architecture = here.architecture,
                    .host = host_name(),
                    .torch = spec.torch};
  json const vouched{
      {"package", description_of(spec)}, {"info", codec::encode(info)}, {"fnv1a64", digest(read_file(made))}};
  write_file(about, vouched.dump(2) + "\n");
  fs::rename(made, e.package);
  fs::rename(about, e.about);
  fs::remove_all(e.building);
  return info;
}

} // namespace

std::optional<compiled_package> find_package(package_spec const& spec) { return find(spec, entry_of(spec)); }

compiled_package find_or_compile(package_spec const& spec, std::function<void(bool)> const& compiling,
                                 compile_site const& here) {
  auto const e = entry_of(spec);
  if (auto cached = find(spec, e)) return std::move(*cached);

  announcement const busy(compiling);
  exclusive_lock const alone(e.lock);
  if (auto cached = find(spec, e)) return std::move(*cached); // another compiled it while we waited
  return usable([&] { return compiled_package{e.package, compile(spec, e, here)}; });
}

} // namespace plateau
