// SPDX-License-Identifier: Apache-2.0
// A stand-in for libnccl.so.2 that needs no GPU and goes wrong where its script says. Its ranks, threads or processes of
// one machine, find each other by their unique id alone and really add up what each contributes, from host memory.
//
// $FAKE_NCCL is the script, a list of WHAT or WHAT@RANK with commas between:
//   no_id             ncclGetUniqueId fails
//   init_fails        ncclCommInitRankConfig fails at once
//   never_ready       this rank's initialisation never gets anywhere, and so nobody's
//   init_breaks       the initialisation reports an error after a while
//   breaks            the first all-reduce reports an error after a while
//   never_sums        this rank takes no part in all-reduces, so nobody's ends
//   wrong_value       one of the sums is wrong
// $FAKE_NCCL_VERSION is what ncclGetVersion says. fake_nccl_* below are for the test.
#include <fcntl.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { most_ranks = 16, most_floats = 1 << 16 };

// Shared by all ranks of a communicator: a file named by its id.
struct meeting {
  atomic_int present;                                     // ranks whose initialisation has begun
  atomic_int left;                                        // ranks that have finalised
  atomic_long contributed[most_ranks], taken[most_ranks]; // by rank: how many sums it has given to, and has taken
  float slots[most_ranks][most_floats];
};

struct ncclComm {
  ncclUniqueId id;
  struct meeting* all;
  int rank, ranks;
  bool initialised, finalising;
  long submitted, looks;
  size_t floats;
  float const* contribution;
  float* sum;
};

static atomic_int aborted, destroyed;
static atomic_int blocking = -1;

int fake_nccl_aborted(void) { return aborted; }     // communicators
int fake_nccl_destroyed(void) { return destroyed; } // communicators
int fake_nccl_blocking(void) { return blocking; }   // as the last communicator was asked to be

static bool scripted(char const* what, int rank) {
  char const* script = getenv("FAKE_NCCL");
  char here[64];
  snprintf(here, sizeof here, "%s@%d", what, rank);
  char copy[256], *rest = NULL;
  snprintf(copy, sizeof copy, "%s", script != NULL ? script : "");
  for (char* word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
    if (strcmp(word, what) == 0 || strcmp(word, here) == 0) return true;
  return false;
}

ncclResult_t ncclGetVersion(int* version) {
  char const* told = getenv("FAKE_NCCL_VERSION");
  *version = told != NULL ? atoi(told) : NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (scripted("no_id", 0)) return ncclSystemError;
  static atomic_int made;
  memset(id->internal, 0xfe, sizeof id->internal); // bytes that no text holds
  snprintf(id->internal, 64, "/fake-nccl-%d-%d", (int)getpid(), atomic_fetch_add(&made, 1));
  return ncclSuccess;
}

static struct meeting* meet(ncclUniqueId const* id) {
  int const fd = shm_open(id->internal, O_CREAT | O_RDWR, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(struct meeting)) != 0) return NULL;
  void* const memory = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return memory != MAP_FAILED ? memory : NULL;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config) {
  blocking = config->blocking;
  if (scripted("init_fails", rank) || ranks > most_ranks) return ncclInvalidUsage;
  struct ncclComm* c = calloc(1, sizeof *c);
  c->id = id;
  c->rank = rank;
  c->ranks = ranks;
  c->all = meet(&id);
  if (c->all == NULL) return ncclSystemError;
  if (!scripted("never_ready", rank)) atomic_fetch_add(&c->all->present, 1);
  *comm = c;
  return ncclInProgress;
}

static bool everyone(struct ncclComm const* c, atomic_long const* reached, long number) {
  for (int rank = 0; rank < c->ranks; ++rank)
    if (reached[rank] < number) return false;
  return true;
}

// Takes the sums that were submitted as far as the other ranks let it, one after the other.
static void go_on(struct ncclComm* c) {
  struct meeting* all = c->all;
  while (all->taken[c->rank] < c->submitted && !scripted("never_sums", c->rank)) {
    long const number = all->taken[c->rank] + 1;
    if (!everyone(c, all->taken, number - 1)) return;
    if (all->contributed[c->rank] < number) {
      memcpy(all->slots[c->rank], c->contribution, c->floats * sizeof(float));
      all->contributed[c->rank] = number;
    }
    if (!everyone(c, all->contributed, number)) return;
    for (size_t i = 0; i < c->floats; ++i) {
      c->sum[i] = 0;
      for (int rank = 0; rank < c->ranks; ++rank) c->sum[i] += all->slots[rank][i];
    }
    if (scripted("wrong_value", c->rank)) c->sum[c->floats / 2] += 1;
    all->taken[c->rank] = number;
  }
}

static ncclResult_t state_of(struct ncclComm* c) {
  enum { a_while = 20 }; // looks
  ++c->looks;
  if (!c->initialised) {
    if (scripted("init_breaks", c->rank) && c->looks > a_while) return ncclSystemError;
    if (c->all->present < c->ranks) return ncclInProgress;
    c->initialised = true;
    c->looks = 0;
  }
  if (scripted("breaks", c->rank) && c->submitted > 0 && c->looks > a_while) return ncclRemoteError;
  if (c->finalising && c->all->left < c->ranks) return ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t* state) {
  *state = state_of(c);
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(void const* contribution, void* sum, size_t count, ncclDataType_t type, ncclRedOp_t op,
                           ncclComm_t c, cudaStream_t stream) {
  if (!c->initialised || type != ncclFloat32 || op != ncclSum || count > most_floats) return ncclInvalidArgument;
  c->contribution = contribution;
  c->sum = sum;
  c->floats = count;
  ++c->submitted;
  *(struct ncclComm**)stream = c; // host memory of the test, which asks fake_nccl_idle about it
  return ncclSuccess;
}

// Whether all that was submitted to the stream is done: cudaStreamQuery of the stand-in. `last` is what the stream points to.
int fake_nccl_idle(struct ncclComm* last) {
  if (last == NULL) return 1;
  go_on(last);
  return !scripted("breaks", last->rank) && last->all->taken[last->rank] == last->submitted;
}

ncclResult_t ncclCommFinalize(ncclComm_t c) {
  c->finalising = true;
  atomic_fetch_add(&c->all->left, 1);
  return ncclInProgress;
}

static void drop(struct ncclComm* c) {
  shm_unlink(c->id.internal); // every rank has come by now, or never will
  munmap(c->all, sizeof *c->all);
  free(c);
}

ncclResult_t ncclCommDestroy(ncclComm_t c) {
  atomic_fetch_add(&destroyed, 1);
  drop(c);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t c) {
  atomic_fetch_add(&aborted, 1);
  drop(c);
  return ncclSuccess;
}

char const* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSystemError: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
  case ncclRemoteError: return "remote process exited or there was a network error";
  case ncclInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
  case ncclInvalidArgument: return "invalid argument";
  default: return "another error";
  }
}

char const* ncclGetLastError(ncclComm_t c) {
  return c != NULL ? "socketPollConnect: connect to 10.0.0.7 returned No route to host" : "";
}
