// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/cli/subcommands.hpp"
#include "schemas/error.hpp"

#include <array>
#include <exception>
#include <fcntl.h>
#include <iostream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace {

constexpr std::array subcommands{plateau::add_run,     plateau::add_submit,  plateau::add_assemble,
                                 plateau::add_merge,   plateau::add_show,    plateau::add_validate,
                                 plateau::add_devices, plateau::add_selftest};

// A closed standard stream would give its number to the next file that is opened, and our output would go there.
void open_closed_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
}

} // namespace

int main(int argc, char** argv) {
  open_closed_streams();
  CLI::App program{"plateau: under load, on every GPU you have: how fast is it, and does its memory reach a plateau?",
                   "plateau"};
  program.set_version_flag("--version", PLATEAU_VERSION);
  program.require_subcommand(1);
  program.footer("Example: plateau run jobs/smoke_cpu.json -n 2");
  std::vector<std::pair<CLI::App*, plateau::run_subcommand>> known;
  for (auto const add : subcommands) {
    auto run = add(program);
    known.emplace_back(program.get_subcommands({}).back(), std::move(run));
  }
  try {
    program.parse(argc, argv);
    for (auto const& [subcommand, run] : known) {
      if (!subcommand->parsed()) continue;
      auto const code = run();
      // what `run` found is in files; of the others the output is all there is
      bool const lost = !std::cout.flush() && subcommand->get_name() != "run";
      if (lost) throw std::runtime_error("cannot write to the standard output; is its disk full, or its reader gone?");
      return static_cast<int>(code);
    }
  } catch (CLI::ParseError const& e) {
    return program.exit(e) == 0 ? 0 : static_cast<int>(plateau::exit_code::bad_input);
  } catch (plateau::input_error const& e) {
    std::cerr << e.what() << '\n';
    return static_cast<int>(plateau::exit_code::bad_input);
  } catch (std::exception const& e) {
    std::cerr << "plateau: " << e.what() << '\n';
    return 1;
  }
}
