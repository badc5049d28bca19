// Instruction sets chosen at run time: PAIRGRAM_CLONES before a function compiles it for AVX-512,
// AVX2 and the baseline, and the loader picks one. Empty where the tool chain lacks it and under
// sanitizers (thread sanitizer crashes on ifunc resolvers).
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) && \
    defined(__gnu_linux__) && !defined(PAIRGRAM_NO_CLONES)
#define PAIRGRAM_CLONES \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define PAIRGRAM_CLONES
#endif
