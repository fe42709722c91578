// SPDX-License-Identifier: Apache-2.0
#include "orchestrator/rank/signals.hpp"

#include <csignal>
#include <initializer_list>

namespace plateau {

namespace {

volatile std::sig_atomic_t soon = 0, now = 0;

void on_signal(int signal) {
  if (signal == SIGTERM)
    now = 1;
  else
    soon = 1;
}

} // namespace

void install_rank_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal; // no SA_RESTART: poll() must return
  sigaction(SIGUSR1, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  for (int const ignored : {SIGINT, SIGHUP, SIGPIPE}) sigaction(ignored, &action, nullptr);
}

stop_request requested_stop() {
  return now != 0 ? stop_request::now : soon != 0 ? stop_request::soon : stop_request::none;
}

} // namespace plateau
