// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/supervisor.hpp"

#include "orchestrator/rank/communicator.hpp"
#include "schemas/error.hpp"
#include "schemas/host.hpp"
#include "schemas/injection.hpp"

#include <system_error>

namespace plateau {

namespace {

template <class... Fs>
struct overloaded : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
overloaded(Fs...) -> overloaded<Fs...>; // clang 16 does not deduce it by itself

// A worker that goes wrong may say anything.
std::string presentable(std::string reason) {
  constexpr std::size_t longest = 4096;
  if (reason.size() > longest) reason = reason.substr(0, longest) + "...";
  return readable(reason);
}

} // namespace

supervisor::supervisor(worker_command command, protocol::hello hello)
    : command_(std::move(command)), hello_(std::move(hello)) {}

void supervisor::set_job(job run) { hello_.run = std::move(run); }

std::variant<device_info, supervisor::no_worker> supervisor::bring_up(worker_process::look const& look) {
  if (worker_) return *device_;
  try {
    worker_.emplace(command_);
  } catch (std::system_error const& e) {
    return no_worker{case_status::failed, e.what(), true};
  }
  worker_->send(hello_);
  auto answer = worker_->wait(hello_.run.timeouts_s, look);
  auto outcome = std::visit(
      overloaded{[](worker_lost& lost) -> std::variant<device_info, no_worker> {
                   return no_worker{lost.status, std::move(lost.reason), false};
                 },
                 [](protocol::event& event) -> std::variant<device_info, no_worker> {
                   if (auto* device = std::get_if<device_info>(&event)) return std::move(*device);
                   if (auto* failure = std::get_if<protocol::failure>(&event))
                     return no_worker{failure->status, presentable(std::move(failure->reason)), true};
                   return no_worker{case_status::crashed, "the worker answered hello with something else", false};
                 }},
      answer);
  if (auto const* device = std::get_if<device_info>(&outcome))
    device_ = *device;
  else
    worker_.reset();
  return outcome;
}

std::optional<case_result> supervisor::prepare(case_id const& id, worker_process::look const& look) try {
  id_ = id;
  started_ = utc_now();
  began_ = std::chrono::steady_clock::now();
  auto const up = bring_up(look);
  if (auto const* none = std::get_if<no_worker>(&up)) return result(none->status, none->reason);
  worker_->send(protocol::prepare{id});
  auto answer = worker_->wait(hello_.run.timeouts_s, look);
  if (auto* lost = std::get_if<worker_lost>(&answer)) {
    worker_.reset();
    return result(lost->status, lost->reason);
  }
  auto& event = std::get<protocol::event>(answer);
  if (std::holds_alternative<protocol::ready>(event)) return std::nullopt;
  if (auto const* failure = std::get_if<protocol::failure>(&event)) return failed(*failure);
  worker_.reset();
  return result(case_status::crashed, "the worker answered prepare with something else");
} catch (out_of_step const&) {
  throw;
} catch (std::exception const& e) {
  return broken_off(e);
}

case_result supervisor::measure(worker_process::look const& look) try {
  worker_->send(protocol::start{});
  std::vector<memory_point> curve;
  while (true) {
    auto answer = worker_->wait(hello_.run.timeouts_s, look);
    auto const given_up = [&](case_status status, std::string reason) {
      auto r = result(status, std::move(reason));
      r.soak_so_far = std::move(curve);
      return r;
    };
    if (auto* lost = std::get_if<worker_lost>(&answer)) {
      worker_.reset();
      return given_up(lost->status, lost->reason);
    }
    auto& event = std::get<protocol::event>(answer);
    if (auto const* point = std::get_if<memory_point>(&event);
        point != nullptr && std::ssize(curve) <= hello_.run.soak.windows) {
      curve.push_back(*point);
    } else if (auto const* failure = std::get_if<protocol::failure>(&event)) {
      auto given = failed(*failure);
      given.soak_so_far = std::move(curve);
      return given;
    } else if (auto* done = std::get_if<case_result>(&event);
               done != nullptr && done->id == id_ && done->rank == hello_.rank && done->run_id == hello_.run_id) {
      return std::move(*done);
    } else {
      worker_.reset();
      return given_up(case_status::crashed, "the worker answered start with something else");
    }
  }
} catch (out_of_step const&) {
  throw;
} catch (std::exception const& e) {
  return broken_off(e);
}

std::variant<nccl_info, fabric_failure> supervisor::open_fabric(worker_process::look const& look) {
  auto answer = ask<nccl_info>(protocol::open_fabric{}, look);
  if (auto const* why = std::get_if<std::string>(&answer)) return fabric_failure{fabric_step::loading, *why};
  return std::get<nccl_info>(std::move(answer));
}

fabric_result supervisor::check_fabric(std::string const& unique_id, int ranks, worker_process::look const& look) {
  auto answer = ask<fabric_result>(protocol::check_fabric{unique_id, ranks}, look);
  if (auto* found = std::get_if<fabric_result>(&answer)) return std::move(*found);
  fabric_result lost;
  lost.failure = fabric_failure{fabric_step::initialising, std::get<std::string>(answer)};
  return lost;
}

std::variant<protocol::package, std::string> supervisor::compile(std::string const& mode,
                                                                 worker_process::look const& look) {
  return ask<protocol::package>(protocol::compile{mode}, look);
}

// The worker's answer, if it is of the kind that belongs to the command; or what went wrong.
template <class Event>
std::variant<Event, std::string> supervisor::ask(protocol::command const& command,
                                                 worker_process::look const& look) try {
  if (!worker_) return "the worker is gone";
  worker_->send(command);
  auto answer = worker_->wait(hello_.run.timeouts_s, look);
  if (auto const* lost = std::get_if<worker_lost>(&answer)) {
    worker_.reset();
    return presentable(lost->reason);
  }
  auto& event = std::get<protocol::event>(answer);
  if (auto* asked_for = std::get_if<Event>(&event)) return std::move(*asked_for);
  if (auto const* failure = std::get_if<protocol::failure>(&event)) return presentable(failure->reason);
  worker_.reset();
  return "the worker answered with something else";
} catch (out_of_step const&) {
  throw;
} catch (std::exception const& e) {
  worker_.reset();
  return std::string("the rank could not go on with its worker: ") + e.what();
}

void supervisor::release() {
  if (worker_) worker_->stop();
  worker_.reset();
}

// A worker that calls its own failure a crash is about to end: its device is broken.
case_result supervisor::failed(protocol::failure const& failure) {
  if (failure.status == case_status::crashed) worker_.reset();
  return result(failure.status, failure.reason);
}

// Something failed on this rank's side, for lack of memory or descriptors perhaps: it costs this case, not the run.
case_result supervisor::broken_off(std::exception const& e) {
  worker_.reset();
  return result(case_status::failed, std::string("the rank could not go on with its worker: ") + e.what());
}

case_result supervisor::result(case_status status, std::string reason) const {
  case_result r;
  r.run_id = hello_.run_id;
  r.id = id_;
  r.rank = hello_.rank;
  r.status = status;
  r.reason = presentable(std::move(reason));
  r.started = started_;
  r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  r.device = device_;
  for (auto const& planted : injections_for(hello_.run, id_, hello_.rank)) r.warnings.push_back(warning_about(planted));
  return r;
}

} // namespace plateau
