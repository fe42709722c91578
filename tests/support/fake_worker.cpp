// SPDX-License-Identifier: Apache-2.0
// A worker without Torch: speaks the protocol, makes up plausible results at once, and goes wrong where its
// script says. The script is $FAKE_WORKER_SCRIPT, a JSON list of faults:
//     {"rank": 1, "case": "eager.c2", "at": "timed", "do": "segv"}
// rank and case may be left out (any). at: hello, prepare, warmup, timed, soak, finishing, open_fabric,
// check_fabric. do: see `misbehave`; one that takes "seconds" shows progress all the while. "unless": a file; once it
// is there, the fault is over. "mark": a file that is made when the fault begins. Two of them need no "at" and bend
// what is made up instead:
//     {"do": "leak", "bytes": 4096, "every_window": true}     live bytes rise with each soak window; false: with the
//     first
//     {"do": "slow_latency", "factor": 2}
// A worker that is asked for "cuda" says that it has a GPU of its own, and for the fabric check:
//     {"do": "same_gpu"}                         that GPU is everybody's
//     {"do": "device", "name": "...", "uuid": "...", "torch": "..."}    it has another device, or library
//     {"do": "device", "pretended": true}        its device is only pretended
//     {"do": "nccl", "version": "2.19.3"}        it has another NCCL
//     {"do": "fabric", "step": "initialising", "reason": "..."}    its check fails
#include "schemas/host.hpp"
#include "schemas/progress.hpp"
#include "schemas/protocol.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace plateau;

namespace {

class fake_worker {
public:
  fake_worker()
      : script_(json::parse(std::getenv("FAKE_WORKER_SCRIPT") != nullptr ? std::getenv("FAKE_WORKER_SCRIPT") : "[]")),
        progress_(static_cast<progress*>(
            mmap(nullptr, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED, protocol::progress_fd, 0))) {}

  void serve() {
    protocol::frame_buffer buffer;
    while (auto const frame = protocol::receive_frame(protocol::socket_fd, buffer))
      std::visit([this](auto const& c) { on(c); }, protocol::command_of(*frame));
  }

private:
  json script_;
  progress* progress_;
  protocol::hello hello_;
  case_id id_;
  bool checked_fabric_ = false;

  void send(protocol::event const& e) { protocol::send_frame(protocol::socket_fd, protocol::to_frame(e)); }
  void send_bytes(std::vector<std::uint8_t> const& bytes) { protocol::send_frame(protocol::socket_fd, bytes); }

  // True when a fault ended the case.
  bool at(phase now, char const* step) {
    progress_->now = now;
    for (auto const& fault : script_) {
      if (fault.value("at", "") != step || fault.value("rank", hello_.rank) != hello_.rank) continue;
      if (std::string(step) != "hello" && fault.value("case", id_.text()) != id_.text()) continue;
      if (fault.contains("unless") && std::filesystem::exists(fault.at("unless").get<std::string>())) continue;
      if (fault.contains("mark")) std::ofstream(fault.at("mark").get<std::string>());
      return misbehave(fault.at("do"), fault.value("seconds", 0.7));
    }
    return false;
  }

  bool misbehave(std::string const& what, double seconds) {
    if (what == "exit") std::_Exit(3);
    if (what == "segv") raise(SIGSEGV);
    if (what == "kill") raise(SIGKILL);
    if (what == "hang") hang();
    if (what == "garbage") send_bytes({3, 0, 0, 0, 0xff, 0xfe, 0xfd});
    if (what == "half_frame") send_bytes({200, 0, 0, 0, 0xa1}), std::_Exit(0);
    if (what == "half_frame_then_silence") send_bytes({200, 0, 0, 0, 0xa1}), hang();
    if (what == "trickle") trickle();
    if (what == "huge_frame") send_bytes({0xff, 0xff, 0xff, 0x7f, 0});
    if (what == "wrong_answer") send(memory_point{}), send(protocol::ready{});
    while (what == "endless_points") send(memory_point{});
    if (what == "fail") send(protocol::failure{case_status::failed, "planted failure"});
    if (what == "oom") send(protocol::failure{case_status::out_of_memory, "planted out of memory"});
    if (what == "skip") send(protocol::failure{case_status::skipped, "planted skip"});
    if (what == "grandchild") leave_a_child(), raise(SIGSEGV);
    if (what == "leave_a_child") return leave_a_child(), false;
    if (what == "leave_a_daemon") return leave_a_child(true), false;
    if (what == "flood") return flood_the_log(), false;
    if (what == "slow") return work_for(seconds), false;
    return true;
  }

  [[noreturn]] static void hang() {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }

  // A long frame, one byte a second.
  [[noreturn]] void trickle() {
    for (send_bytes({200, 0, 0, 0});; std::this_thread::sleep_for(std::chrono::seconds(1))) send_bytes({0xa1});
  }

  // It holds the socket open and does not mind SIGTERM; as a daemon it is in a session of its own, too.
  static void leave_a_child(bool daemon = false) {
    if (fork() != 0) return;
    if (daemon) setsid();
    std::signal(SIGTERM, SIG_IGN);
    hang();
  }

  void flood_the_log() {
    std::string const line(std::size_t{1} << 20, 'x');
    constexpr int lines = 1024; // 1 GiB
    for (int i = 0; i < lines; ++i) std::puts(line.c_str()), ++progress_->threads[0].requests;
  }

  void work_for(double seconds) {
    auto const until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ++progress_->threads[0].requests;
    }
  }

  void on(protocol::hello const& h) {
    hello_ = h;
    if (at(phase::starting, "hello")) return;
    progress_->now = phase::idle;
    device_info d;
    d.kind = h.run.device == "auto" ? "cpu" : h.run.device;
    d.name = "fake device";
    if (d.kind == "cuda") d.uuid = "GPU-" + std::to_string(bent_by("same_gpu") != nullptr ? 0 : h.rank);
    if (auto const* const other = bent_by("device")) {
      d.name = other->value("name", d.name);
      if (other->contains("uuid")) d.uuid = other->at("uuid");
      if (other->contains("torch")) d.versions["torch"] = other->at("torch");
      if (other->contains("pretended")) d.pretended = other->at("pretended");
    }
    d.memory_bytes = std::int64_t{1} << 30;
    d.cpu_set = allowed_cpus().text;
    d.cpus = allowed_cpus().count;
    send(d);
  }

  void on(protocol::prepare const& p) {
    id_ = p.id;
    if (checked_fabric_) return send(protocol::failure{case_status::failed, "NCCL's buffers sit in this worker"});
    if (at(phase::preparing, "prepare") || at(phase::warming_up, "warmup")) return;
    progress_->now = phase::waiting;
    send(protocol::ready{});
  }

  void on(protocol::start const&) {
    if (at(phase::timed, "timed")) return;
    auto result = made_up_result();
    if (at(phase::soaking, "soak")) return;
    for (auto const& point : result.measured->soak) send(point);
    if (at(phase::finishing, "finishing")) return;
    progress_->now = phase::idle;
    send(result);
  }

  void on(protocol::compile const&) { send(protocol::failure{case_status::skipped, "has no compiler"}); }

  void on(protocol::open_fabric const&) {
    if (at(phase::checking_fabric, "open_fabric")) return;
    auto const* const other = bent_by("nccl");
    nccl_info info{other != nullptr ? other->value("version", "") : "2.28.9", "libnccl.so.2", {}, {}};
    if (hello_.rank == 0) info.unique_id = "the id that rank 0 of " + hello_.run_id + " made";
    for (auto const& [name, value] : hello_.run.env)
      if (name.starts_with("NCCL_")) info.settings[name] = value;
    send(info);
  }

  void on(protocol::check_fabric const& c) {
    checked_fabric_ = true;
    std::fprintf(stderr, "checks the fabric of %d ranks: %s\n", static_cast<int>(c.ranks), c.unique_id.c_str());
    if (at(phase::checking_fabric, "check_fabric")) return;
    fabric_result r;
    if (auto const* const bad = bent_by("fabric"))
      r.failure = fabric_failure{value_of<fabric_step>(bad->value("step", "")).value(), bad->value("reason", "")};
    r.initialised_ns = 1'000'000;
    r.used_before = 1'000 << 20;
    r.used_initialised = 1'100 << 20;
    r.used_first = r.used_last = (1'512 + 8 * hello_.rank) << 20;
    for (std::int64_t const bytes : {64 << 10, 128 << 20}) // 100 GB/s on rank 0, 50 on rank 1, ...
      r.all_reduces.push_back({bytes, 20, 20 * bytes / 100 * (1 + hello_.rank)});
    send(r);
    progress_->now = phase::idle;
  }

  [[noreturn]] void on(protocol::stop const&) { std::_Exit(0); }

  // The fault of this name, if it is for this rank and case.
  json const* bent_by(std::string_view what) const {
    for (auto const& fault : script_)
      if (fault.at("do") == what && fault.value("rank", hello_.rank) == hello_.rank &&
          fault.value("case", id_.text()) == id_.text())
        return &fault;
    return nullptr;
  }

  case_result made_up_result() const {
    case_result r;
    r.run_id = hello_.run_id;
    r.id = id_;
    r.rank = hello_.rank;
    r.status = case_status::passed;
    r.started = utc_now();
    r.compile_applied = id_.mode.starts_with("compiled");
    if (id_.mode.starts_with("arena")) r.arena_kind = "planned";
    auto& m = r.measured.emplace();
    make_up_latencies(m);
    make_up_counters(m);
    make_up_soak(m);
    m.harness_ns = 50;
    return r;
  }

  // Allocations and frees of a request.
  std::int64_t events() const {
    if (id_.mode.starts_with("arena")) return 0;
    return id_.mode.starts_with("compiled") ? 5 : 11;
  }

  static void serve(counters& allocator, std::int64_t all_events) {
    allocator.allocation_events += all_events;
    allocator.free_events += all_events;
  }

  // Between 100 and 119 us, over and over.
  void make_up_latencies(measurement& m) const {
    auto const* const slow = bent_by("slow_latency");
    auto const factor = slow != nullptr ? slow->value("factor", 2.0) : 1.0;
    for (std::int64_t t = 0; t < id_.concurrency; ++t) {
      auto& start = m.start_ns.emplace_back();
      auto& latency = m.latency_ns.emplace_back();
      for (std::int64_t i = 0, now = 0; i < hello_.run.requests_per_worker; ++i) {
        auto const healthy = 100'000 + 1000 * (i * 37 % 20) + 10 * t + hello_.rank; // no trend
        start.push_back(now);
        latency.push_back(static_cast<std::int64_t>(factor * static_cast<double>(healthy)));
        now += latency.back() + 50;
        m.wall_ns = std::max(m.wall_ns, now);
      }
    }
  }

  void make_up_counters(measurement& m) const {
    m.pre.allocated_bytes = 1 << 20;
    m.pre.reserved_bytes = 2 << 20;
    m.pre.segment_alloc_events = 1;
    m.pre.allocation_events = 7;
    m.post = m.pre;
    serve(m.post, events() * hello_.run.requests_per_worker * id_.concurrency);
    m.post.peak_allocated_bytes = m.pre.allocated_bytes + 4096;
    m.outside_pre_bytes = m.outside_post_bytes = outside;
  }

  static constexpr std::int64_t outside = 48 << 20, page = 4096, segment = 2 << 20;

  // A few pages up and down without a trend, as a resident set has them; the same in every run.
  std::int64_t noise(std::int64_t window) const {
    constexpr std::array<std::int64_t, 11> pages{2, -1, 3, -3, 0, 1, -2, 2, -1, 0, -1};
    return page * pages[static_cast<std::size_t>(window + 4 * hello_.rank) % pages.size()];
  }

  void make_up_soak(measurement& m) const {
    auto const& run = hello_.run;
    auto const* const leak = bent_by("leak");
    auto const requests = requests_per_soak_window(run) * id_.concurrency;
    memory_point point;
    point.allocator = m.post;
    for (std::int64_t w = 0; w <= run.soak.windows && run.soak.windows > 0; ++w) {
      point.outside_bytes = outside + noise(w);
      point.host_resident_bytes = 4 * outside + noise(w + 5);
      if (w > 0) point.requests += requests, point.elapsed_ns += 1'000'000, serve(point.allocator, events() * requests);
      if (leak != nullptr && (w == 1 || (w > 1 && leak->value("every_window", true))))
        grow(point.allocator, leak->at("bytes"));
      m.soak.push_back(point);
    }
    if (!m.soak.empty()) make_up_attribution(m, requests, leak);
  }

  // One allocation that is not freed.
  static void grow(counters& allocator, std::int64_t bytes) {
    ++allocator.allocation_events;
    allocator.allocated_bytes += bytes;
    allocator.peak_allocated_bytes = std::max(allocator.peak_allocated_bytes, allocator.allocated_bytes);
    for (; allocator.reserved_bytes < allocator.allocated_bytes; allocator.reserved_bytes += segment)
      ++allocator.segment_alloc_events;
  }

  void make_up_attribution(measurement& m, std::int64_t requests, json const* leak) const {
    auto& a = m.tracked.emplace();
    a.requests = requests;
    a.pre = a.post = m.soak.back().allocator;
    auto const made = events() * requests;
    serve(a.post, made);
    if (made > 0) a.ops.push_back({"aten::linear/aten::addmm", made, made * 512, made, made * 512});
    if (leak == nullptr || !leak->value("every_window", true)) return;
    grow(a.post, leak->at("bytes"));
    a.ops.push_back({"plateau::planted_leak/aten::empty", 1, leak->at("bytes"), 0, 0});
  }
};

} // namespace

int main() {
  // as the real one: when the rank dies, so does all that the worker started
  std::signal(SIGRTMIN, [](int) { kill(0, SIGKILL); });
  prctl(PR_SET_PDEATHSIG, SIGRTMIN);
  try {
    fake_worker().serve();
  } catch (std::exception const& e) {
    std::fprintf(stderr, "fake_worker: %s\n", e.what());
    return 1;
  }
}
