// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plateau {

/// What a rank's user or its cluster asked of it by a signal. Handlers only set flags; the rank's loops look
/// at them.
enum class stop_request {
  none,
  soon, ///< SIGUSR1: finish the current case if that fits the grace, then stop
  now,  ///< SIGTERM: seconds are left
};

/// Installs the handlers of a rank; SIGINT, SIGHUP and SIGPIPE are ignored: the front end or the launcher
/// decides.
void install_rank_signals();
stop_request requested_stop();

} // namespace plateau
