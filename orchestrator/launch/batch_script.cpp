// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/launch/batch_script.hpp"

#include "orchestrator/launch/command.hpp"
#include "schemas/error.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace plateau {

extern std::string_view const batch_template; // slurm/job.sh.in

namespace {

void check(batch_request const& r) {
  if (r.gpus_per_node > 0 && r.tasks_per_node > r.gpus_per_node)
    throw input_error(std::to_string(r.tasks_per_node) + " ranks on a node of " + std::to_string(r.gpus_per_node) +
                      " GPUs: two ranks would share one; needs --ntasks-per-node <= --gpus-per-node");
  for (auto const& word : r.sbatch)
    if (!word.starts_with("-") || word == "-" || word == "--")
      throw input_error("\"" + word +
                        "\" is no option of sbatch; such options come last, after --, each as one word, like "
                        "-- --comment=text");
}

// A word of an #SBATCH line, quoted as sbatch reads it.
std::string directive_word(std::string const& word) {
  auto const unfit = [](unsigned char c) { return c < ' ' || c == 127 || c == '"' || c == '\'' || c == '\\'; };
  if (word.empty() || std::ranges::any_of(word, unfit))
    throw input_error("\"" + word +
                      "\" cannot stand in a batch script; needs a text of one line without quotes and backslashes");
  return word.find_first_of(" #") == std::string::npos ? word : '"' + word + '"';
}

// Where sbatch puts a job's number into a path, a '%' of its own is two.
std::string without_patterns(std::string const& path) {
  std::string out;
  for (char const c : path) out += c == '%' ? std::string("%%") : std::string(1, c);
  return out;
}

std::string output_pattern(batch_request const& r) {
  return without_patterns(r.folder) + "/" + r.name + (r.array ? "-%A_%a.out" : "-%j.out");
}

bool is_directive(std::string_view line) { return line.starts_with("#SBATCH"); }

// The lines of the site file that are directives, or the others.
std::string site_lines(std::string_view site, bool directives) {
  std::string out;
  while (!site.empty()) {
    auto const line = site.substr(0, site.find('\n'));
    site.remove_prefix(std::min(site.size(), line.size() + 1));
    if (is_directive(line) == directives) out += std::string(line) + '\n';
  }
  return out;
}

std::string directives(batch_request const& r) {
  std::string out = site_lines(r.site, true);
  auto const add = [&out](std::string const& word) { out += "#SBATCH " + directive_word(word) + '\n'; };
  auto const add_if = [&add](char const* option, auto const& value) {
    if (value) add(option + *value);
  };
  add("--job-name=plateau-" + r.name);
  add("--nodes=" + std::to_string(r.nodes));
  add("--ntasks-per-node=" + std::to_string(r.tasks_per_node));
  if (r.gpus_per_node > 0) add("--gpus-per-node=" + std::to_string(r.gpus_per_node));
  if (r.cpus_per_task) add("--cpus-per-task=" + std::to_string(*r.cpus_per_task));
  if (!r.share_nodes) add("--exclusive");
  add_if("--partition=", r.partition);
  add_if("--time=", r.time);
  add_if("--account=", r.account);
  add_if("--constraint=", r.constraint);
  add_if("--qos=", r.qos);
  add_if("--array=", r.array);
  add("--output=" + output_pattern(r));
  add("--open-mode=append");
  add("--requeue");
  add("--signal=B:USR1@" + std::to_string(r.warning_seconds));
  for (auto const& word : r.sbatch) add(word);
  out.pop_back();
  return out;
}

// The template with each @key@ replaced. What is put in is not looked at again.
std::string filled_in(std::string_view text, std::map<std::string_view, std::string> const& values) {
  std::string out;
  for (auto at = text.find('@'); at != std::string_view::npos; at = text.find('@')) {
    auto const end = text.find('@', at + 1);
    auto const value = end == std::string_view::npos ? values.end() : values.find(text.substr(at + 1, end - at - 1));
    out += text.substr(0, value == values.end() ? at + 1 : at);
    if (value != values.end()) out += value->second;
    text.remove_prefix(value == values.end() ? at + 1 : end + 1);
  }
  return out += text;
}

} // namespace

std::string batch_script(batch_request const& request) {
  check(request);
  auto site = site_lines(request.site, false);
  if (!site.empty()) site.pop_back();
  return filled_in(batch_template, {{"directives", directives(request)},
                                    {"site", site.empty() ? "# there was no site file" : site},
                                    {"plateau", shell_text({request.plateau})},
                                    {"job", shell_text({request.job_file})},
                                    {"runs", shell_text({request.folder})},
                                    {"name", shell_text({request.name})},
                                    {"run_flags", shell_text(request.run_flags)},
                                    {"resume_flags", shell_text(request.resume_flags)}});
}

std::string batch_run_folder(batch_request const& request, std::string const& job_id) {
  return request.folder + "/" + request.name + "-" + job_id + (request.array ? "_*" : "");
}

std::string batch_output(batch_request const& request, std::string const& job_id) {
  return batch_run_folder(request, job_id) + ".out";
}

} // namespace plateau
