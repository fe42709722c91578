# SPDX-License-Identifier: Apache-2.0
"""Command lines that cannot be meant: each is refused with what is wrong and what was meant, and nothing is started."""
import os

import pytest

from plateau_test import environment, plateau, write_job

SUBCOMMANDS = "(run, rehearse, compile, submit, assemble, merge, show, validate, devices, selftest)"
RUN_HELP = "(plateau run --help lists all)"

CHECKS = "growing, inconclusive, churn, unequal, straggler, unsteady, skipped"

ONE_MISTAKE = [
    ("", f"a subcommand is missing; choose from {SUBCOMMANDS[1:-1]} (plateau --help explains them)"),
    ("rnu job.json", f"unknown subcommand rnu; did you mean run? {SUBCOMMANDS}"),
    ("RUN job.json", f"unknown subcommand RUN; did you mean run? {SUBCOMMANDS}"),
    ("benchmark job.json", f"unknown subcommand benchmark; choose from {SUBCOMMANDS[1:-1]}"),
    ("job.json", f"unknown subcommand job.json; choose from {SUBCOMMANDS[1:-1]}"),
    ("''", f"unknown subcommand \"\"; choose from {SUBCOMMANDS[1:-1]}"),
    ("-n 2 run job.json", "unknown option -n; options follow the subcommand, as in plateau run JOB -n 2 "
                          "(plateau --help lists all)"),
    ("run job.json --hiden 3", f"unknown option --hiden; did you mean --hidden? {RUN_HELP}"),
    ("run --hiden 3 job.json", f"unknown option --hiden; did you mean --hidden? {RUN_HELP}"),
    ("run job.json --hiden=3", f"unknown option --hiden; did you mean --hidden? {RUN_HELP}"),
    ("run job.json --seq_len 3", f"unknown option --seq_len; did you mean --seq-len? {RUN_HELP}"),
    ("run job.json --Modes eager", f"unknown option --Modes; did you mean --modes? {RUN_HELP}"),
    ("run job.json -hidden 3", f"unknown option -hidden; did you mean --hidden? {RUN_HELP}"),
    ("run job.json -output there", f"unknown option -output; did you mean --output? {RUN_HELP}"),
    ("run job.json --dryrun", f"unknown option --dryrun; did you mean --dry-run? {RUN_HELP}"),
    ("run job.json --frobnicate 3", f"unknown option --frobnicate {RUN_HELP}"),
    ("run job.json --as-rnk", f"unknown option --as-rnk {RUN_HELP}"),
    ("run job.json -x", f"unknown option -x {RUN_HELP}"),
    ("rehearse --gpu h200", "JOB is missing (job file; an earlier run's summary.json is one, too) "
                            "(plateau rehearse --help lists all)"),
    ("run --resume runs/a -o there", f"--resume and -o exclude each other; give one of them {RUN_HELP}"),
    ("run job.json --allow-moved", f"--allow-moved needs --resume beside it {RUN_HELP}"),
    ("run job.json -n 2 --rank 3", f"unknown option --rank; did you mean --ranks? {RUN_HELP}"),
    ("run job.json --dry-run=banana", f"--dry-run takes no value {RUN_HELP}"),
    ("merge runs/a", "--output is missing (the folder of the merged run) (plateau merge --help lists all)"),
    ("submit job.json --nodes 0", "--nodes 0; needs an integer >= 1 and <= 1000000 (plateau submit --help lists all)"),
    ("submit job.json --gpu-per-node 2", "unknown option --gpu-per-node; did you mean --gpus-per-node? "
                                         "(plateau submit --help lists all)"),
    ("run ''", f"JOB is empty (job file; an earlier run's summary.json is one, too) {RUN_HELP}"),
    ("run job.json second.json", f"second.json is one argument too many; plateau run takes JOB alone {RUN_HELP}"),
    ("run job.json --hidden", f"--hidden lacks its value (features of the model) {RUN_HELP}"),
    ("run job.json --hidden --batch 3", f"--hidden lacks its value (features of the model) {RUN_HELP}"),
    ("run job.json --name --dry-run", f"--name lacks its value (label of the run; by default the job file's stem) "
                                      f"{RUN_HELP}"),
    ("run job.json --name=", f"the value of --name is empty; give one, or leave the option out {RUN_HELP}"),
    ("run job.json -o ''", f"the value of -o is empty; give one, or leave the option out {RUN_HELP}"),
    ("run job.json --hidden 3 --hidden 4", f"--hidden is given twice; give it once {RUN_HELP}"),
    ("run job.json -n 1 --ranks 2 -n 3", f"--ranks is given twice; give it once {RUN_HELP}"),
    ("run job.json -n 0", f"-n 0; needs an integer >= 1 and <= 1000000 {RUN_HELP}"),
    ("run job.json -n -1", f"-n -1; needs an integer >= 1 and <= 1000000 {RUN_HELP}"),
    ("run job.json -n1.5", f"-n 1.5; needs an integer >= 1 and <= 1000000 {RUN_HELP}"),
    ("run job.json --ranks=two", f"--ranks \"two\"; needs an integer >= 1 and <= 1000000 {RUN_HELP}"),
    ("run job.json -n 18446744073709551616", f"-n 1.8446744073709552e+19; needs an integer >= 1 and <= 1000000 {RUN_HELP}"),
    ("run job.json --grace soon", f"--grace \"soon\"; needs a number >= 0 and <= 86400 {RUN_HELP}"),
    ("run job.json --grace -1", f"--grace -1; needs a number >= 0 and <= 86400 {RUN_HELP}"),
    ("run job.json --launcher mpirn", f"--launcher \"mpirn\"; did you mean mpirun? (mpirun, srun) {RUN_HELP}"),
    ("run job.json --launcher aprun-2", f"--launcher \"aprun-2\"; needs one of mpirun, srun {RUN_HELP}"),
    ("run job.json --fail-on gorwing", f"--fail-on \"gorwing\" is no check; did you mean growing? ({CHECKS}, with commas "
                                        f"between them, or none) {RUN_HELP}"),
    ("show runs/a --fail-on growing,", f"--fail-on \"\" is no check; choose from {CHECKS}, with commas between them, or "
                                       "none (plateau show --help lists all)"),
    ("assemble", "RUN is missing (the run folder) (plateau assemble --help lists all)"),
    ("assemble runs/a runs/b", "runs/b is one argument too many; plateau assemble takes RUN alone "
                               "(plateau assemble --help lists all)"),
    ("show runs/a --fromat json", "unknown option --fromat; did you mean --format? (plateau show --help lists all)"),
    ("show runs/a --format jnuit", "--format \"jnuit\"; did you mean junit? (table, json, junit) "
                                   "(plateau show --help lists all)"),
    ("show runs/a --explain --format json", "--explain and --format exclude each other; give one of them "
                                            "(plateau show --help lists all)"),
    ("validate job.json --field", "unknown option --field; did you mean --fields? (plateau validate --help lists all)"),
    ("devices --device gpu", "--device \"gpu\"; did you mean cuda? (auto, cuda, cpu) "
                             "(plateau devices --help lists all)"),
    ("devices --device GPU", "--device \"GPU\"; did you mean cuda? (auto, cuda, cpu) (plateau devices --help lists all)"),
    ("devices here", "here is one argument too many; plateau devices takes none (plateau devices --help lists all)"),
    ("selftest -n 1", "-n 1; needs an integer >= 2 and <= 64 (plateau selftest --help lists all)"),
]


def refused(tmp_path, line):
    write_job(tmp_path)
    words = [word.strip("'") for word in line.split()]
    done = plateau(*words, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "", done
    assert os.listdir(tmp_path) == ["job.json"], "nothing is written"
    return done.stderr.splitlines()


@pytest.mark.parametrize("line, sentence", ONE_MISTAKE, ids=[line or "nothing" for line, _ in ONE_MISTAKE])
def test_a_mistake_is_named_with_what_was_meant(tmp_path, line, sentence):
    assert refused(tmp_path, line) == ["plateau: " + sentence]


def test_every_mistake_of_a_line_is_named_at_once(tmp_path):
    assert refused(tmp_path, "rnu job.json --hiden 3 --btach=4 -n 0 --launcher srn --grace --name a --name b") == [
        f"plateau: unknown subcommand rnu; did you mean run? {SUBCOMMANDS}",
        "plateau: unknown option --hiden; did you mean --hidden?",
        "plateau: unknown option --btach; did you mean --batch?",
        "plateau: -n 0; needs an integer >= 1 and <= 1000000",
        "plateau: --launcher \"srn\"; did you mean srun? (mpirun, srun)",
        "plateau: --grace lacks its value (seconds that the current case gets after Ctrl-C)",
        f"plateau: --name is given twice; give it once {RUN_HELP}",
    ]


def test_words_that_no_terminal_should_see_are_shown_safely(tmp_path):
    write_job(tmp_path)
    done = plateau("run", "job.json", "--hid\x1b[31mden\n" + 1000 * "x", cwd=tmp_path)
    assert done.returncode == 2 and "\x1b" not in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert len(done.stderr) < 200


@pytest.mark.parametrize("line", [
    "run job.json --hidden 3 -n2 -o=there --dry-run",
    "run --dry-run --ranks 2 --hidden=3 -- job.json",
    "run job.json --dry-run --dry-run --random-seed 7 --launch-args --oversubscribe --launch-args=-n",
    "run job.json --dry-run --inject leak:every=5 --inject slow:ms=1 --soak windows=12,requests_per_window=5",
    "run job.json --dry-run --launcher mpirun --grace 0 --fail-on none",
    "run --hiden 3 --help",
    "--version",
    "validate --fields --schema",
])
def test_a_line_that_can_be_meant_is_read(tmp_path, line):
    write_job(tmp_path)
    done = plateau(*line.split(), cwd=tmp_path)
    assert done.returncode == 0 and done.stdout != "", done


@pytest.mark.parametrize("device, gpus, note", [
    ("cpu", ["--gpus-per-node", 2], "note: the job's device is cpu: the GPUs that it asks Slurm for will have nothing to do"),
    ("cuda", ["--ntasks-per-node", 2], "note: the job's device is cuda, and it asks Slurm for no GPUs (--gpus-per-node)"),
    ("auto", ["--gpus-per-node", 2], None),
    ("cuda", ["--ntasks-per-node", 2, "--", "--gres=gpu:2"], None),
])
def test_a_batch_job_that_cannot_be_submitted_leaves_nothing(tmp_path, device, gpus, note):
    write_job(tmp_path)
    done = plateau("submit", "job.json", "--device", device, *gpus, cwd=tmp_path, env=environment() | {"PATH": "/nowhere"})
    assert done.returncode == 2 and done.stdout == ""
    *notes, error = done.stderr.splitlines()
    assert notes == [note] * (note is not None)
    assert "cannot start sbatch" in error and "is this a login node" in error
    assert os.listdir(tmp_path) == ["job.json"]


def test_a_batch_job_is_warned_early_enough_for_its_grace(tmp_path):
    write_job(tmp_path)
    done = plateau("submit", "job.json", "--ntasks-per-node", 2, "--grace", 600, "--dry-run", cwd=tmp_path)
    assert done.returncode == 0 and "#SBATCH --signal=B:USR1@660\n" in done.stdout
    assert "writes the job to" in done.stderr
    assert os.listdir(tmp_path) == ["job.json"], "nothing is written"
