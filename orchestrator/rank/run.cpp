// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/run.hpp"

#include "orchestrator/analysis/fabric.hpp"
#include "orchestrator/analysis/gates.hpp"
#include "orchestrator/launch/run_line.hpp"
#include "orchestrator/rank/communicator.hpp"
#include "orchestrator/rank/preflight.hpp"
#include "orchestrator/rank/signals.hpp"
#include "orchestrator/rank/supervisor.hpp"
#include "orchestrator/store/assemble.hpp"
#include "orchestrator/store/durable.hpp"
#include "orchestrator/store/raw_result.hpp"
#include "orchestrator/store/run_folder.hpp"
#include "schemas/codec.hpp"
#include "schemas/host.hpp"
#include "schemas/injection.hpp"
#include "schemas/run_record.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <future>
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

// All ranks agreed not to run, so all are still in step.
struct refused : input_error {
  using input_error::input_error;
};

// All ranks agreed that these machines cannot run the job; the run folder says why, and is kept.
struct unfit : input_error {
  using input_error::input_error;
};

// What rank 0 decides for all: a text, or why the run is refused.
template <class Decide>
std::string decided_by_rank_0(communicator& ranks, Decide decide, char const* what) {
  json decision;
  if (ranks.rank() == 0) {
    try {
      decision["text"] = decide();
    } catch (std::exception const& e) {
      decision["refused"] = e.what();
    }
  }
  auto const agreed = json::parse(ranks.broadcast(decision.dump(-1, ' ', false, json::error_handler_t::replace), what));
  if (agreed.contains("refused")) throw refused(agreed["refused"].get<std::string>());
  return agreed["text"].get<std::string>();
}

// By these files in it the ranks recognise a folder as rank 0's, or as one that a rank of their host made.
constexpr auto nonce_name = ".nonce", host_nonce_name = ".nonce-host";

bool holds(std::filesystem::path const& file, std::string const& nonce) {
  try {
    return std::filesystem::exists(file) && read_text(file) == nonce;
  } catch (std::exception const&) {
    return false;
  }
}

run_folder new_folder(std::filesystem::path const& path) {
  try {
    return create_run_folder(path);
  } catch (std::filesystem::filesystem_error const& e) {
    throw input_error("cannot make the run folder " + path.string() + ": " + e.code().message() +
                      "; choose another one with -o");
  }
}

std::string host_name() {
  utsname names{};
  uname(&names);
  return names.nodename;
}

// Tells hosts of one name apart.
std::string host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return host_name() + "/" + boot;
}

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
      : ranks_(ranks), options_(options), voice_(v) {}

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
  std::string run_id_;
  run_folder folder_;
  bool made_folder_ = false;        // this rank made it, and takes it away when the run is refused
  std::vector<bool> shares_folder_; // by rank: it sees the folder of rank 0
  std::optional<supervisor> supervisor_;
  std::optional<steady_clock::time_point> asked_to_stop_;
  std::optional<std::string> rehearsed_; // as run_info has it

  void agree_on_job();
  void agree_on_folder();
  std::string take_folder(std::filesystem::path const& path);
  std::string make_folder(std::filesystem::path const& path, std::string const& nonce);
  std::vector<rank_info> bring_up_workers();
  void settle_device(std::vector<rank_info> const& infos);
  fabric_record look_at_fabric(std::vector<rank_info> const& infos);
  void refuse_if_unfit(fabric_record const& fabric);
  void write_down_the_run(std::vector<rank_info> const& infos, fabric_record const& fabric);
  void point_latest() const;
  void note_crowding(std::vector<rank_info> const& infos, std::vector<std::string>& warnings);
  std::string run_cases();
  case_result run_case(case_id const& id, bool& stop);
  std::string store(case_id const& id, case_result const& result, std::vector<std::uint8_t>& cbor);
  std::string gather(case_id const& id, std::vector<std::uint8_t> const& mine);
  rank_end finish(std::string const& stopped);
  rank_end conclude(run_outcome const& outcome);
  template <class Work>
  auto beating(Work work);
  worker_process::look look(std::string label, std::chrono::duration<double> grace);
};

// Files take as long as there is data, and as their disk pleases. A thread writes them, so that this one can tell the
// others that this rank lives; but not for ever, since a file system may hang.
template <class Work>
auto rank_run::beating(Work work) {
  constexpr auto longest = std::chrono::hours(1);
  auto const began = steady_clock::now();
  auto done = std::async(std::launch::async, work);
  while (done.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready)
    if (steady_clock::now() - began < longest) ranks_.beat();
  return done.get();
}

rank_end rank_run::run() {
  voice_.say(run_line::kind::status, "the ranks are up");
  agree_on_job();
  agree_on_folder();
  auto const infos = bring_up_workers();
  settle_device(infos);
  auto const fabric = look_at_fabric(infos);
  decided_by_rank_0(
      ranks_, [&] { return write_down_the_run(infos, fabric), ""; }, "writing run.json");
  refuse_if_unfit(fabric);
  auto const stopped = run_cases();
  supervisor_->release();
  return finish(stopped);
}

void rank_run::agree_on_job() {
  auto const text = decided_by_rank_0(
      ranks_,
      [&] {
        check_world(ranks_, options_);
        auto j = parse_job(read_text(options_.job_file), options_.job_file.string(), options_.overrides);
        if (options_.rehearsed) j = job_to_rehearse(std::move(j));
        refuse_gates_without_a_soak(options_.fail_on, j);
        return to_json(j).dump();
      },
      "reading the job");
  job_ = parse_job(text, "job");
  refuse_faults_on_no_rank(job_, ranks_.size());
  ranks_.set_patience(communicator::seconds(job_.timeouts_s.collective));
}

void rank_run::agree_on_folder() {
  auto nonce = std::to_string(getpid()) + "-" + std::to_string(steady_clock::now().time_since_epoch().count());
  auto const agreed = json::parse(decided_by_rank_0(
      ranks_,
      [&] {
        bool const named = options_.folder && options_.folder_is_ours;
        auto const id = named ? options_.folder->filename().string() : new_run_id(job_.name);
        auto const path = std::filesystem::absolute(options_.folder.value_or(std::filesystem::path("runs") / id));
        folder_ = new_folder(path);
        made_folder_ = true;
        write_durably(path / nonce_name, nonce);
        return json{{"run_id", id}, {"path", path.string()}, {"nonce", nonce}}.dump();
      },
      "making the run folder"));
  run_id_ = agreed["run_id"];

  // A rank that does not see what rank 0 wrote has a folder of its own, or with the other ranks of its host, and sends
  // what it measures. Only one of them can make that folder; the others look again once it is made.
  std::filesystem::path const path = agreed["path"].get<std::string>();
  nonce = agreed["nonce"];
  bool const shares = ranks_.rank() == 0 || holds(path / nonce_name, nonce);
  std::string complaint;
  if (ranks_.rank() != 0) complaint = shares ? take_folder(path) : make_folder(path, nonce);
  for (auto const answer : ranks_.all_gather(shares ? 1 : 0, "looking for the run folder"))
    shares_folder_.push_back(answer != 0);
  if (!complaint.empty() && holds(path / host_nonce_name, nonce)) complaint = take_folder(path);
  auto const complaints = ranks_.all_gather(complaint, "taking the run folder");
  std::error_code ignored;
  if (made_folder_) std::filesystem::remove(path / (shares ? nonce_name : host_nonce_name), ignored);
  for (auto const& each : complaints)
    if (!each.empty()) throw refused(each);
}

std::string rank_run::take_folder(std::filesystem::path const& path) {
  folder_ = run_folder{path};
  return "";
}

// Why the folder could not be made, or nothing.
std::string rank_run::make_folder(std::filesystem::path const& path, std::string const& nonce) {
  try {
    folder_ = new_folder(path);
    made_folder_ = true;
    write_durably(path / host_nonce_name, nonce);
    return "";
  } catch (std::exception const& e) {
    return "rank " + std::to_string(ranks_.rank()) + " on " + host_name() + ": " + e.what();
  }
}

std::vector<rank_info> rank_run::bring_up_workers() {
  worker_command command{options_.worker, without_launcher(current_environment()), folder_.worker_log(ranks_.rank())};
  for (auto const& [name, value] : job_.env) command.env[name] = value;
  if (options_.rehearsed) command.env = with_pretend_gpu(command.env, *options_.rehearsed, ranks_.local_size());
  protocol::hello hello;
  hello.run_id = run_id_;
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
  if (ranks_.rank() == 0) conclude({static_cast<std::int64_t>(exit_code::bad_input), told(fabric), utc_now()});
  ranks_.barrier("writing the results");
  throw unfit("the GPUs cannot work together, so nothing was measured: " + fabric.reason +
              "; --env NCCL_DEBUG=INFO makes NCCL tell more in " + (folder_.path / "logs").string() +
              "; --fabric off measures without");
}

void rank_run::write_down_the_run(std::vector<rank_info> const& infos, fabric_record const& fabric) {
  run_info info;
  info.run_id = run_id_;
  info.started = utc_now();
  info.launcher = options_.launcher;
  info.command_line = options_.command_line;
  info.versions["plateau"] = PLATEAU_VERSION;
  info.versions["mpi"] = mpi_version();
  utsname names{};
  uname(&names);
  info.versions["kernel"] = names.release;
  info.fail_on = options_.fail_on;
  info.job = to_json(job_);
  info.ranks = infos;
  info.fabric = fabric;
  info.rehearsed = rehearsed_;
  auto const device = infos.front().device ? infos.front().device->name : std::string("no device");
  voice_.say(run_line::kind::note, job_.name + ": " + std::to_string(cases_of(job_).size()) + " cases on " +
                                       std::to_string(infos.size()) + (infos.size() == 1 ? " rank" : " ranks") + ", " +
                                       device);
  if (rehearsed_)
    voice_.say(run_line::kind::note, "a rehearsal: " + *rehearsed_ + " is only pretended, so nothing is timed");
  note_crowding(infos, info.warnings);
  bool const expected = job_.device == "cuda" && infos.size() > 1 && job_.fabric != "off";
  if (fabric.status == fabric_status::passed || (fabric.status == fabric_status::not_checked && expected))
    voice_.say(run_line::kind::note, told(fabric));
  write_durably(folder_.job_json(), info.job.dump(2) + "\n");
  write_run_info(folder_, info);
  if (options_.folder_is_ours) point_latest();
}

// The link is a convenience: a run is not given up for it.
void rank_run::point_latest() const {
  try {
    point_latest_at(folder_);
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
    warnings.push_back(note);
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
    auto const began = steady_clock::now();
    bool stop = false;
    auto const result = run_case(id, stop);
    if (stop) return "stopped on request";
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
    if (cannot_store.empty()) cannot_store = gather(id, cbor);
    if (!cannot_store.empty()) return cannot_store;
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.1f s",
                  std::chrono::duration<double>(steady_clock::now() - began).count());
    auto const [status, reason] = verdict_of(record);
    auto line = std::to_string(i + 1) + "/" + std::to_string(cases.size()) + " " + id.text() +
                std::string(width - id.text().size() + 2, ' ') + std::string(name_of(status)) + "  ";
    auto const said = status != case_status::passed ? reason : rehearsed_ ? "" : std::string(seconds);
    voice_.say(run_line::kind::note, line + said);
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
    beating([&] { write_raw_result(folder_, id, ranks_.rank(), cbor); });
    return "";
  } catch (std::exception const& e) {
    return e.what();
  }
}

// Brings to rank 0 what the ranks measured that do not share its folder. Why it could not be kept there, or nothing:
// the same on every rank.
std::string rank_run::gather(case_id const& id, std::vector<std::uint8_t> const& mine) {
  auto const what = id.text() + ": gathering the results";
  std::string complaint;
  bool gathered = false;
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    if (shares_folder_[static_cast<std::size_t>(rank)]) continue;
    gathered = true;
    if (ranks_.rank() == rank) ranks_.send(mine, 0, what.c_str());
    if (ranks_.rank() != 0) continue;
    auto const bytes = ranks_.receive(rank, what.c_str());
    try {
      if (!bytes.empty()) beating([&] { write_raw_result(folder_, id, rank, bytes); });
    } catch (std::exception const& e) {
      complaint = "rank 0 cannot keep the result of rank " + std::to_string(rank) + ": " + e.what();
    }
  }
  return gathered ? ranks_.broadcast(complaint, what.c_str()) : "";
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
    auto const assembled = beating([&] { return assemble(folder_, outcome, options_.blind_to); });
    for (auto const& complaint : assembled.complaints) voice_.say(run_line::kind::note, complaint);
    write_outcome(folder_, *assembled.record.outcome);
    return {static_cast<exit_code>(assembled.record.outcome->exit_code), folder_.path};
  } catch (std::exception const& e) {
    voice_.say(run_line::kind::note,
               std::string(e.what()) + "; to try again later: plateau assemble " + folder_.path.string());
    return {exit_code::incomplete, std::nullopt};
  }
}

void rank_run::clean_up() {
  supervisor_.reset();
  std::error_code ignored;
  if (made_folder_) std::filesystem::remove_all(folder_.path, ignored);
}

void rank_run::give_up(std::string const& why, bool seconds_left) {
  supervisor_.reset();
  if (ranks_.rank() == 0) {
    voice_.say(run_line::kind::note, why);
    if (folder_.path.empty() || !std::filesystem::exists(folder_.run_json())) // nothing was measured
      clean_up();
    else if (!seconds_left)
      conclude({static_cast<std::int64_t>(exit_code::incomplete), why, utc_now()});
    else if (options_.launcher == "external") // else the front end does it
      voice_.say(run_line::kind::note,
                 "what was measured is kept; to make the results of it: plateau assemble " + folder_.path.string());
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
