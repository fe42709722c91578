// SPDX-License-Identifier: Apache-2.0
#include "worker/server.hpp"

#include "schemas/protocol.hpp"
#include "worker/fabric/fabric.hpp"
#include "worker/modes/compiled.hpp"
#include "worker/prepared_case.hpp"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <optional>
#include <poll.h>
#include <string>
#include <unistd.h>
#include <variant>

namespace plateau {

namespace {

std::string first_line(std::string const& text) { return text.substr(0, text.find('\n')); }

protocol::failure failure_of(std::exception_ptr e) {
  try {
    std::rethrow_exception(e);
  } catch (unsupported const& x) {
    return {case_status::skipped, x.what()};
  } catch (c10::OutOfMemoryError const& x) {
    return {case_status::out_of_memory, first_line(x.what_without_backtrace())};
  } catch (std::bad_alloc const&) {
    return {case_status::out_of_memory, "the machine has no memory left for the worker's own data"};
  } catch (c10::Error const& x) {
    return {case_status::failed, first_line(x.what_without_backtrace())};
  } catch (std::exception const& x) {
    return {case_status::failed, first_line(x.what())};
  } catch (...) {
    return {case_status::failed, "an exception of unknown type"};
  }
}

// A conversation with one rank.
class session {
public:
  session(int socket, progress& shared) : socket_(socket), shared_(shared) {}

  void send(protocol::event const& e) { protocol::send_frame(socket_, protocol::to_frame(e)); }

  void run() {
    while (auto const frame = protocol::receive_frame(socket_, received_)) {
      auto const command = protocol::command_of(*frame);
      if (std::holds_alternative<protocol::stop>(command)) return;
      std::visit([this](auto const& c) { answer(c); }, command);
      shared_.now.store(case_ ? phase::waiting : phase::idle, std::memory_order_relaxed);
    }
  }

private:
  void answer(protocol::hello const& h) {
    if (context_) throw format_error("a second hello");
    // first of all: neither reaches the threads of an operator that has run
    at::set_num_threads(static_cast<int>(h.run.intra_op_threads));
    at::set_num_interop_threads(1);
    opened_ = open_device({.wanted = h.run.device,
                           .local_rank = h.local_rank,
                           .local_size = h.local_size,
                           .sync = h.run.sync,
                           .allow_tf32 = h.run.allow_tf32});
    auto const info = opened_.dev->info();
    main_stream_ = opened_.dev->make_stream();
    context_.emplace(worker_context{resolved_for(h.run, info.kind), h.run_id, h.rank, *opened_.dev, *main_stream_,
                                    shared_, opened_.warnings});
    send(info);
  }

  void answer(protocol::prepare const& p) {
    auto const& context = greeted("prepare");
    case_.reset();
    for_the_case([&] {
      case_.emplace(context, p.id);
      send(protocol::ready{});
    });
    if (case_) case_->keep_clocks_up([this] { return there_is_more_to_read(); });
  }

  void answer(protocol::start const&) {
    if (!case_) throw format_error("start without a case that is ready");
    for_the_case([&] { send(case_->run([this](memory_point const& point) { send(point); })); });
    case_.reset();
  }

  void answer(protocol::open_fabric const&) {
    auto const& context = on_a_gpu("open_fabric");
    for_the_case([&] { send(open_fabric(context.rank == 0)); });
  }

  void answer(protocol::check_fabric const& c) {
    auto const& context = on_a_gpu("check_fabric");
    for_the_case([&] {
      send(check_fabric({context.rank, c.ranks, c.unique_id},
                        std::chrono::duration<double>(context.run.timeouts_s.fabric)));
    });
  }

  void answer(protocol::compile const& c) {
    auto const& context = greeted("compile");
    for_the_case([&] {
      if (!runs_a_package(c.mode)) throw unsupported(c.mode + " runs no package");
      auto const compiling = [this](bool begun) {
        shared_.now.store(begun ? phase::compiling : phase::preparing, std::memory_order_relaxed);
      };
      auto const made =
          compile_ahead(c.mode, context.run, program_named(context.run.workload), context.dev.info(), compiling);
      send(protocol::package{made.info, made.file.string(),
                             static_cast<std::int64_t>(std::filesystem::file_size(made.file))});
    });
  }

  void answer(protocol::stop const&) {}

  // The next command, or the end of the connection.
  bool there_is_more_to_read() const {
    pollfd socket{socket_, POLLIN, 0};
    return !received_.empty() || poll(&socket, 1, 0) != 0;
  }

  worker_context const& greeted(char const* command) const {
    if (!context_) throw format_error(std::string(command) + " before hello");
    return *context_;
  }

  worker_context const& on_a_gpu(char const* command) {
    auto const& context = greeted(command);
    if (context.run.device != "cuda") throw format_error(std::string(command) + " for a worker without a GPU");
    shared_.now.store(phase::checking_fabric, std::memory_order_relaxed);
    return context;
  }

  // What goes wrong in a case ends that case only, unless it broke the device.
  template <class Steps>
  void for_the_case(Steps const& steps) {
    try {
      steps();
    } catch (...) {
      auto const failure = failure_of(std::current_exception());
      if (auto const why = opened_.dev->broken()) end_with_the_device(*why);
      case_.reset();
      send(failure);
    }
  }

  // Every CUDA call fails from now on, those of destructors too. The next case gets another process.
  [[noreturn]] void end_with_the_device(std::string const& why) {
    send(protocol::failure{case_status::crashed,
                           first_line(why) + "; the device is lost to this worker process, which ends"});
    std::fprintf(stderr, "plateau-worker: %s\n", why.c_str());
    std::fflush(nullptr);
    _exit(1);
  }

  int socket_;
  progress& shared_;
  protocol::frame_buffer received_;
  opened_device opened_;
  std::unique_ptr<stream> main_stream_;
  std::optional<worker_context> context_;
  std::optional<prepared_case> case_;
};

} // namespace

int serve(int socket, progress& shared) {
  c10::InferenceMode const inference;
  session with_rank(socket, shared);
  try {
    with_rank.run();
    return 0;
  } catch (...) {
    auto const failure = failure_of(std::current_exception());
    std::fprintf(stderr, "plateau-worker: %s\n", failure.reason.c_str());
    try {
      with_rank.send(failure);
    } catch (std::exception const&) { // the rank is gone: nobody is left to tell
    }
    return 1;
  }
}

} // namespace plateau
