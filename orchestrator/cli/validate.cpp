// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/subcommands.hpp"
#include "orchestrator/store/check_stored.hpp"
#include "schemas/error.hpp"
#include "schemas/job.hpp"

#include <iostream>
#include <memory>

namespace plateau {

namespace {

struct validate_flags {
  std::string file;
  bool fields = false, schema = false;
};

void list_fields() {
  for (auto const& field : job_fields()) {
    auto const fallback = field.get(job{});
    std::cout << field.name << "  (default "
              << (field.name == "name" || fallback.is_null() ? "see below" : fallback.dump()) << ")\n    " << field.help
              << '\n';
  }
}

std::string joined_lines(std::vector<std::string> const& lines) {
  std::string text;
  for (auto const& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

exit_code validate(validate_flags const& flags) {
  if (flags.fields) list_fields();
  if (flags.schema) std::cout << job_schema().dump(2) << '\n';
  if (flags.file.empty()) {
    if (!flags.fields && !flags.schema)
      throw input_error("nothing to check; give a job, a run folder or a file of one, or --fields");
    return exit_code::good;
  }
  auto const report = check_stored(flags.file);
  if (!report.faults.empty()) throw input_error(joined_lines(report.faults));
  for (auto const& remark : report.remarks) std::cerr << remark << '\n';
  std::cout << flags.file << ": " << report.what << '\n';
  return exit_code::good;
}

} // namespace

run_subcommand add_validate(CLI::App& program) {
  auto flags = std::make_shared<validate_flags>();
  auto* command = program.add_subcommand("validate", "Check that a job is good, that results are whole");
  command->footer(
      "Examples:\n  plateau validate jobs/smoke_cpu.json\n  plateau validate runs/latest\n  plateau validate --fields");
  command->add_option("FILE", flags->file,
                      "a job, a run folder, or a file of one: summary.json, run.h5, rank-00003.cbor, ...");
  command->add_flag("--fields", flags->fields, "list the fields of a job");
  command->add_flag("--schema", flags->schema, "print the JSON Schema of a job");
  return [flags] { return validate(*flags); };
}

} // namespace plateau
