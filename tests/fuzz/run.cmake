# SPDX-License-Identifier: GPL-2.0-only
# Run one fuzzer for a fixed number of inputs, from a corpus made anew.
set(CORPUS fuzz_corpus_${CODEC})
file(REMOVE_RECURSE ${CORPUS})
file(MAKE_DIRECTORY ${CORPUS})
execute_process(COMMAND ${SEEDS} ${CODEC} ${CORPUS} COMMAND_ERROR_IS_FATAL ANY)
execute_process(
  COMMAND ${FUZZER} -seed=1 -runs=${RUNS} -max_len=1024 -print_final_stats=1
    -artifact_prefix=fuzz_failed_${CODEC}_ ${CORPUS}
  COMMAND_ERROR_IS_FATAL ANY)
