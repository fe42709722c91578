// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/run.hpp"

#include "orchestrator/analysis/attempts.hpp"
#include "orchestrator/analysis/fabric.hpp"
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/launch/run_line.hpp"
#include "orchestrator/rank/agreement.hpp"
#include "orchestrator/rank/communicator.hpp"
#include "orchestrator/rank/placement.hpp"
#include "orchestrator/rank/preflight.hpp"
#include "orchestrator/rank/resume.hpp"
#include "orchestrator/rank/shared_folder.hpp"
#include "orchestrator/rank/signals.hpp"
#include "orchestrator/rank/supervisor.hpp"
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/raw_result.hpp"
#include "orchestrator/store/resume.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "schemas/codec.hpp"
#include "schemas/host.hpp"
#include "schemas/injection.hpp"
#include "schemas/run_record.hpp"

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <set>
#include <sys/utsname.h>
#include <unistd.h>

namespace plateau {

namespace {

using std::chrono::steady_clock;

// Rank 0's voice; the other ranks have none.
class voice {
public:
  voice(bool speaks, bool to_front_end) : speaks_(speaks), to_front_end_(to_front_end) {}

  void say(run_line::kind what, std::string const& text) const {
    if (!speaks_) return;
    if (to_front_end_)
      std::cout << to_line({what, text}) << std::flush;
    else if (what != run_line::kind::status)
      std::cerr << text << '\n';
  }

private:
  bool speaks_, to_front_end_;
};

// All ranks agreed that these machines cannot run the job; the run folder says why, and is kept.
struct unfit : input_error {
  using input_error::input_error;
};

void check_world(communicator const& ranks, rank_options const& options) {
  if (!options.expected_ranks || *options.expected_ranks == ranks.size()) return;
  throw input_error("asked for " + std::to_string(*options.expected_ranks) +
                    " ranks, but this one finds itself in a world of " + std::to_string(ranks.size()) +
                    "; mpirun (or srun) and plateau are of different MPI installations: use the mpirun of the Open MPI "
                    "that plateau was built with");
}

// A fault that never acts would prove nothing.
void refuse_faults_on_no_rank(job const& j, int ranks) {
  std::vector<problem> problems;
  for (auto const& text : j.inject)
    if (auto const planted = read_injection(text, "inject", problems); planted.rank && *planted.rank >= ranks)
      throw refused("inject: \"" + text + "\" is for rank " + std::to_string(*planted.rank) +
                    ", and the ranks are 0 to " + std::to_string(ranks - 1));
}

// One run, on this rank.
class rank_run {
public:
  rank_run(communicator& ranks, rank_options const& options, voice const& v)
      : ranks_(ranks), options_(options), voice_(v), folder_(ranks) {}

  rank_end run();

  /// The run is refused: leaves no folder behind.
  void clean_up();
  /// Agreement with the other ranks is lost: keeps what is there, and leaves without MPI_Finalize, which
  /// would wait for the dead.
  [[noreturn]] void give_up(std::string const& why, bool seconds_left);

private:
  communicator& ranks_;
  rank_options const& options_;
  voice const& voice_;
  job job_;
  std::optional<resumed_run> earlier_; // the one that goes on
  std::vector<case_id> to_run_;
  std::int64_t attempt_ = 1;
  bool written_down_ = false; // on rank 0: from then on there is something to assemble
  shared_folder folder_;
  std::optional<supervisor> supervisor_;
  std::optional<steady_clock::time_point> asked_to_stop_;
  std::optional<std::string> not_comparable_;
  std::optional<std::string> rehearsed_; // as run_info has it

  void begin();
  void go_on();
  void agree_on_job();
  std::vector<rank_info> bring_up_workers();
  void settle_device(std::vector<rank_info> const& infos);
  void look_at_placement(std::vector<rank_info> const& infos);
  fabric_record look_at_fabric(std::vector<rank_info> const& infos);
  void refuse_if_unfit(fabric_record const& fabric);
  run_info write_down_the_run(std::vector<rank_info> const& infos, fabric_record const& fabric);
  run_info described(std::vector<rank_info> const& infos, fabric_record const& fabric);
  void note_the_run(run_info& info);
  void point_latest() const;
  void note_crowding(std::vector<rank_info> const& infos, std::vector<std::string>& warnings);
  std::string run_cases();
  case_result run_case(case_id const& id, bool& stop);
  std::string store(case_id const& id, case_result const& result, std::vector<std::uint8_t>& cbor);
  rank_end finish(std::string const& stopped);
  rank_end conclude(run_outcome const& outcome);
  worker_process::look look(std::string label, std::chrono::duration<double> grace);
};

rank_end rank_run::run() {
  voice_.say(run_line::kind::status, "the ranks are up");
  decided_by_rank_0(
      ranks_, [&] { return check_world(ranks_, options_), ""; }, "counting the ranks");
  options_.resume ? go_on() : begin();
  if (to_run_.empty()) return finish("");
  auto const infos = bring_up_workers();
  settle_device(infos);
  look_at_placement(infos);
  if (earlier_ && !options_.resume->allow_moved) refuse_if_moved(*earlier_, infos);
  auto const fabric = look_at_fabric(infos);
  if (earlier_) refuse_if_unfit(fabric); // while its results are as they were
  auto const written = decided_by_rank_0(
      ranks_, [&] { return encode(write_down_the_run(infos, fabric)).dump(); }, "writing run.json");
  folder_.copy_to_others(decode<run_info>(json::parse(written)));
  refuse_if_unfit(fabric);
  auto const stopped = run_cases();
  supervisor_->release();
  return finish(stopped);
}

void rank_run::begin() {
  agree_on_job();
  folder_.make(options_.folder, options_.folder_is_ours, job_.name);
  to_run_ = cases_of(job_);
}

void rank_run::go_on() {
  earlier_ = take_up(ranks_, folder_, options_);
  job_ = earlier_->before.run;
  attempt_ = earlier_->attempt;
  to_run_ = earlier_->plan.to_run;
  if (to_run_.empty() && options_.fail_on)
    decided_by_rank_0(
        ranks_, [&] { return judge_by(earlier_->before, *options_.fail_on), ""; }, "writing the gates");
  auto const found = to_run_.empty()
                         ? ": every case is there; nothing is left to run"
                         : ", attempt " + std::to_string(attempt_) + ": " + std::to_string(earlier_->plan.kept.size()) +
                               " of " + std::to_string(cases_of(job_).size()) + " cases are there";
  voice_.say(run_line::kind::note, (to_run_.empty() ? "" : "resuming ") + folder_.run_id() + found);
}

void rank_run::agree_on_job() {
  auto const text = decided_by_rank_0(
      ranks_,
      [&] {
        auto j = parse_job(read_text(*options_.job_file), options_.job_file->string(), options_.overrides);
        if (options_.rehearsed) j = job_to_rehearse(std::move(j));
        refuse_gates_without_a_soak(options_.fail_on.value_or(default_gates()), j);
        return to_json(j).dump();
      },
      "reading the job");
  job_ = parse_job(text, "job");
  refuse_faults_on_no_rank(job_, ranks_.size());
  ranks_.set_patience(communicator::seconds(job_.timeouts_s.collective));
}

std::vector<rank_info> rank_run::bring_up_workers() {
  worker_command command{options_.worker, without_launcher(current_environment()),
                         folder_.here().worker_log(ranks_.rank())};
  for (auto const& [name, value] : job_.env) command.env[name] = value;
  if (options_.rehearsed) command.env = with_pretend_gpu(command.env, *options_.rehearsed, ranks_.local_size());
  protocol::hello hello;
  hello.run_id = folder_.run_id();
  hello.rank = ranks_.rank();
  hello.local_rank = ranks_.local_rank();
  hello.local_size = ranks_.local_size();
  hello.run = job_;
  supervisor_.emplace(std::move(command), std::move(hello));
  voice_.say(run_line::kind::status, "starting the workers");

  rank_info info;
  info.rank = ranks_.rank();
  info.host = host_name();
  info.host_id = host_id();
  info.local_rank = ranks_.local_rank();
  info.local_size = ranks_.local_size();
  info.cpu_set = allowed_cpus().text;
  std::string refusal;
  auto const up = supervisor_->bring_up(look("starting", std::chrono::seconds(0)));
  if (auto const* device = std::get_if<device_info>(&up)) info.device = *device;
  if (auto const* none = std::get_if<supervisor::no_worker>(&up); none != nullptr && none->refused)
    refusal = "rank " + std::to_string(info.rank) + " on " + info.host + ": " + none->reason;

  auto const answers =
      ranks_.all_gather(json{{"info", encode(info)}, {"refusal", as_utf8(refusal)}}.dump(), "starting the workers");
  std::vector<rank_info> infos;
  for (auto const& answer : answers) {
    auto const a = json::parse(answer);
    if (!a["refusal"].get<std::string>().empty()) throw refused(a["refusal"].get<std::string>());
    infos.push_back(decode<rank_info>(a["info"]));
  }
  return infos;
}

// From now on the job says on what it runs.
void rank_run::settle_device(std::vector<rank_info> const& infos) {
  std::set<std::string> kinds;
  for (auto const& info : infos)
    if (info.device) kinds.insert(info.device->kind);
  if (kinds.size() > 1)
    throw refused("some ranks have a GPU and others have none; say \"device\": \"cuda\" or \"cpu\"");
  rehearsed_ = pretended_gpu(infos);
  if (options_.rehearsed && !rehearsed_)
    throw refused("the workers did not load the pretend GPU from " + options_.rehearsed->libraries.string() +
                  "; put it into a folder without spaces or colons in its path (PLATEAU_PRETEND_GPU)");
  auto const kind = kinds.empty() ? std::string(job_.device == "cuda" ? "cuda" : "cpu") : *kinds.begin();
  if (job_.device == "auto" && kind == "cpu")
    voice_.say(run_line::kind::note,
               "WARNING: the job leaves the device to plateau, and the workers found none but the CPU: this "
               "measures the CPU; if that is meant, say \"device\": \"cpu\" in the job");
  job_ = resolved_for(job_, kind);
  supervisor_->set_job(job_);
}

// Two ranks on one GPU measure each other.
void rank_run::look_at_placement(std::vector<rank_info> const& infos) {
  auto const shared = shared_gpus(infos);
  if (shared.empty()) return;
  if (!options_.allow_shared_gpu)
    throw refused(shared +
                  "; let every rank of a host see all of its GPUs, or each rank one of its own (srun --gpus-per-node, "
                  "not mpirun within --gpus-per-task), or measure all the same with --allow-shared-gpu");
  not_comparable_ = shared + ", so they were measuring each other";
}

fabric_record rank_run::look_at_fabric(std::vector<rank_info> const& infos) {
  if (job_.fabric == "off") return {fabric_status::not_checked, "the job says \"fabric\": \"off\"", {}};
  auto const why_not = why_no_fabric(infos);
  if (!why_not.empty() && job_.fabric == "check")
    throw refused("\"fabric\": \"check\" needs at least two ranks, each with a GPU of its own, and " + why_not +
                  "; use \"auto\" to check where that is so, or \"off\"");
  if (!why_not.empty()) return {fabric_status::not_checked, why_not, {}};
  return check_fabric(ranks_, *supervisor_, infos[static_cast<std::size_t>(ranks_.rank())],
                      look("fabric", std::chrono::seconds(0)));
}

// With the exit code of bad input: nothing was measured, and it will be the same again until somebody mends the
// machines. 75 would make a batch system try again, and 3 or 4 would speak of cases that were run.
void rank_run::refuse_if_unfit(fabric_record const& fabric) {
  if (fabric.status != fabric_status::failed) return;
  auto const why = "the GPUs cannot work together, so nothing was measured: " + fabric.reason;
  auto const logs = (folder_.here().path / "logs").string();
  if (earlier_) // --env and --fabric would make it another job
    throw unfit(why + "; with NCCL_DEBUG=INFO in the environment NCCL tells more in " + logs +
                "; what was measured before is as it was");
  if (ranks_.rank() == 0) conclude({static_cast<std::int64_t>(exit_code::bad_input), told(fabric), utc_now()});
  ranks_.barrier("writing the results");
  throw unfit(why + "; --env NCCL_DEBUG=INFO makes NCCL tell more in " + logs + "; --fabric off measures without");
}

run_info rank_run::write_down_the_run(std::vector<rank_info> const& infos, fabric_record const& fabric) {
  auto info = described(infos, fabric);
  note_the_run(info);
  if (earlier_) retract_results(folder_.here());
  write_down(folder_.here(), info);
  written_down_ = true;
  if (earlier_ ? folder_.here().path.filename() == folder_.run_id() : options_.folder_is_ours) point_latest();
  return info;
}

// The run as it begins, or as it goes on: what it was begun with stays, what is now is added.
run_info rank_run::described(std::vector<rank_info> const& infos, fabric_record const& fabric) {
  run_attempt now{attempt_, utc_now(), options_.launcher, options_.command_line, {}, {}};
  utsname names{};
  uname(&names);
  now.versions = {{"plateau", PLATEAU_VERSION}, {"mpi", mpi_version()}, {"kernel", names.release}};
  for (auto const& rank : infos) now.places.push_back(place_of(rank));

  run_info info;
  if (earlier_) {
    info = earlier_->before.info;
    info.schema = run_info_format.text();
  } else {
    info.run_id = folder_.run_id();
    info.started = now.started;
    info.launcher = now.launcher;
    info.command_line = now.command_line;
    info.versions = now.versions;
    info.fail_on = default_gates();
    info.job = to_json(job_);
  }
  info.attempts = earlier_ ? attempts_of(info) : std::vector<run_attempt>{};
  info.attempts->push_back(std::move(now));
  info.ranks = infos;
  info.fabric = fabric;
  if (not_comparable_) info.not_comparable = not_comparable_;
  info.rehearsed = rehearsed_;
  if (options_.fail_on) info.fail_on = *options_.fail_on;
  return info;
}

void rank_run::note_the_run(run_info& info) {
  auto const& first = info.ranks.front();
  auto const world = info.ranks.size();
  voice_.say(run_line::kind::note, job_.name + ": " + std::to_string(to_run_.size()) +
                                       (earlier_ ? " cases to run on " : " cases on ") + std::to_string(world) +
                                       (world == 1 ? " rank, " : " ranks, ") +
                                       (first.device ? first.device->name : std::string("no device")));
  if (not_comparable_) voice_.say(run_line::kind::note, "WARNING: not comparable: " + *not_comparable_);
  if (rehearsed_)
    voice_.say(run_line::kind::note, "a rehearsal: " + *rehearsed_ + " is only pretended, so nothing is timed");
  note_crowding(info.ranks, info.warnings);
  bool const expected = job_.device == "cuda" && world > 1 && job_.fabric != "off";
  auto const& fabric = *info.fabric;
  if (fabric.status == fabric_status::passed || (fabric.status == fabric_status::not_checked && expected))
    voice_.say(run_line::kind::note, told(fabric));
}

// The link is a convenience: a run is not given up for it.
void rank_run::point_latest() const {
  try {
    point_latest_at(folder_.here());
  } catch (std::exception const& e) {
    voice_.say(run_line::kind::note, std::string("note: ") + e.what());
  }
}

void rank_run::note_crowding(std::vector<rank_info> const& infos, std::vector<std::string>& warnings) {
  if (job_.device != "cpu") return;
  std::set<std::string> notes;
  for (auto const& info : infos) {
    if (!info.device) continue;
    auto const most = *std::ranges::max_element(job_.concurrency_levels);
    if (info.device->cpus < most)
      notes.insert("note: c" + std::to_string(most) + " puts " + std::to_string(most) + " stream threads on " +
                   std::to_string(info.device->cpus) + (info.device->cpus == 1 ? " core" : " cores"));
    if (info.device->cpus < sysconf(_SC_NPROCESSORS_ONLN) && info.device->cpus < most &&
        options_.launcher == "external")
      notes.insert("note: a rank is bound to CPU " + info.device->cpu_set +
                   "; mpirun binds ranks unless it is given --bind-to none");
  }
  for (auto const& note : notes) {
    if (std::ranges::find(warnings, note) == warnings.end()) warnings.push_back(note);
    voice_.say(run_line::kind::note, note);
  }
}

// What is done while a worker works: signs of life, the status line, and giving up `grace` after a request to stop.
worker_process::look rank_run::look(std::string label, std::chrono::duration<double> grace) {
  return [this, grace, label = std::move(label),
          last = std::string()](progress const& p) mutable -> std::optional<std::string> {
    ranks_.beat();
    auto const now = p.now.load(std::memory_order_relaxed);
    auto status = label + " " + std::string(name_of(now));
    if (now == phase::soaking)
      status +=
          " " + std::to_string(p.soak_window.load(std::memory_order_relaxed)) + "/" + std::to_string(job_.soak.windows);
    if (status != last) voice_.say(run_line::kind::status, status);
    last = std::move(status);
    if (requested_stop() == stop_request::none) return std::nullopt;
    if (!asked_to_stop_) asked_to_stop_ = steady_clock::now();
    if (steady_clock::now() - *asked_to_stop_ < grace) return std::nullopt;
    return "given up: a stop was asked for";
  };
}

// Runs the cases in order. Says why it stopped before the last one, or nothing.
std::string rank_run::run_cases() {
  auto const cases = cases_of(job_);
  std::size_t width = 0;
  for (auto const& id : cases) width = std::max(width, id.text().size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    auto const& id = cases[i];
    if (std::ranges::find(to_run_, id) == to_run_.end()) continue;
    auto const began = steady_clock::now();
    bool stop = false;
    auto result = run_case(id, stop);
    if (stop) return "stopped on request";
    result.attempt = attempt_;
    std::vector<std::uint8_t> cbor;
    auto const complaint = store(id, result, cbor);
    if (job_.isolation == "case") supervisor_->release();

    // the raw results are durable now, so whatever happens from here on loses nothing
    auto const answers = ranks_.all_gather(
        json{{"status", name_of(result.status)}, {"reason", as_utf8(result.reason)}, {"complaint", as_utf8(complaint)}}
            .dump(),
        id.text().c_str());
    case_record record{id, {}};
    std::string cannot_store;
    for (std::size_t rank = 0; rank < answers.size(); ++rank) {
      auto const a = json::parse(answers[rank]);
      case_result& r = record.by_rank.emplace_back(std::in_place).value();
      r.status = value_of<case_status>(a["status"].get<std::string>()).value_or(case_status::failed);
      r.reason = a["reason"];
      auto const why = a["complaint"].get<std::string>();
      if (!why.empty() && cannot_store.empty())
        cannot_store = "rank " + std::to_string(rank) + " cannot keep its result: " + why;
    }
    if (cannot_store.empty()) cannot_store = folder_.gather(id, cbor, attempt_);
    if (!cannot_store.empty()) return cannot_store;
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f s",
                  std::chrono::duration<double>(steady_clock::now() - began).count());
    auto const [status, reason] = verdict_of(record);
    bool const given_up = std::ranges::find(record.by_rank, case_status::missing, status_on) != record.by_rank.end();
    if (!given_up) folder_.drop_older(id, attempt_);
    auto line = std::to_string(i + 1) + "/" + std::to_string(cases.size()) + " " + id.text() +
                std::string(width - id.text().size() + 2, ' ') + std::string(name_of(status)) + "  ";
    auto const said = status != case_status::passed ? reason : rehearsed_ ? "" : std::string(seconds);
    voice_.say(run_line::kind::note, line + said);
    if (given_up) return "stopped on request"; // maybe in the last case, after which nobody would ask
  }
  return "";
}

case_result rank_run::run_case(case_id const& id, bool& stop) {
  std::optional<case_result> prepared;
  auto const watch = look(id.text(), options_.grace);
  if (requested_stop() == stop_request::none) prepared = supervisor_->prepare(id, watch);
  bool const asked = requested_stop() != stop_request::none;
  auto const answers = ranks_.all_gather(asked ? 1 : 0, (id.text() + ": agreeing to start").c_str());
  stop = std::ranges::any_of(answers, [](std::int64_t a) { return a != 0; });
  if (stop) return {};
  ranks_.barrier((id.text() + ": the gate").c_str());
  if (prepared) return std::move(*prepared);
  return supervisor_->measure(watch);
}

// Why the result could not be made durable, or nothing. A case that was given up leaves no result: it is
// missing.
std::string rank_run::store(case_id const& id, case_result const& result, std::vector<std::uint8_t>& cbor) {
  if (result.status == case_status::missing) return "";
  try {
    cbor = encode_raw_result(result);
    beating(ranks_, [&] { write_raw_result(folder_.here(), id, ranks_.rank(), cbor, attempt_); });
    return "";
  } catch (std::exception const& e) {
    return e.what();
  }
}

rank_end rank_run::finish(std::string const& stopped) {
  rank_end end;
  if (ranks_.rank() == 0) {
    voice_.say(run_line::kind::status, "writing run.h5 and summary.json");
    auto const code = stopped.empty() ? exit_code::good : exit_code::incomplete;
    end = conclude({static_cast<std::int64_t>(code), stopped, utc_now()});
    if (!stopped.empty()) voice_.say(run_line::kind::note, stopped);
  }
  ranks_.barrier("writing the results");
  return end;
}

// Makes the results of what was measured, and writes down how the run ended.
rank_end rank_run::conclude(run_outcome const& outcome) {
  try {
    auto const assembled = beating(ranks_, [&] { return assemble(folder_.here(), outcome, options_.blind_to); });
    for (auto const& complaint : assembled.complaints) voice_.say(run_line::kind::note, complaint);
    write_outcome(folder_.here(), *assembled.record.outcome);
    return {static_cast<exit_code>(assembled.record.outcome->exit_code), folder_.here().path};
  } catch (std::exception const& e) {
    voice_.say(run_line::kind::note,
               std::string(e.what()) + "; to try again later: plateau assemble " + folder_.here().path.string());
    return {exit_code::incomplete, std::nullopt};
  }
}

void rank_run::clean_up() {
  supervisor_.reset();
  folder_.clean_up();
}

void rank_run::give_up(std::string const& why, bool seconds_left) {
  supervisor_.reset();
  if (ranks_.rank() == 0) {
    voice_.say(run_line::kind::note, why);
    if (!written_down_) // nothing was measured
      clean_up();
    else if (!seconds_left)
      conclude({static_cast<std::int64_t>(exit_code::incomplete), why, utc_now()});
    else if (options_.launcher == "external") // else the front end does it
      voice_.say(run_line::kind::note,
                 "what was measured is kept; " + how_to_go_on(folder_.here().path, rehearsed_.has_value()));
  } else if (!seconds_left) { // rank 0 may be the one that is lost
    std::cerr << "rank " + std::to_string(ranks_.rank()) + " on " + host_name() + " gives up: " + why + "\n";
  }
  _exit(static_cast<int>(exit_code::incomplete));
}

} // namespace

rank_end run_as_rank(rank_options const& options) {
  install_rank_signals();
  communicator ranks;
  voice const v(ranks.rank() == 0, options.launcher != "external");
  rank_run run(ranks, options, v);
  try {
    return run.run();
  } catch (refused const& e) {
    run.clean_up();
    v.say(run_line::kind::refusal, e.what());
    return {ranks.rank() == 0 ? exit_code::bad_input : exit_code::good, std::nullopt};
  } catch (unfit const& e) {
    v.say(run_line::kind::refusal, e.what());
    return {ranks.rank() == 0 ? exit_code::bad_input : exit_code::good, std::nullopt};
  } catch (terminated const& e) {
    run.give_up(e.what(), true);
  } catch (std::exception const& e) {
    run.give_up(e.what(), false);
  }
}

} // namespace plateau
