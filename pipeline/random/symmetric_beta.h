// Draws from Beta(alpha, alpha), the same bits on every machine: only the basic operations and the
// square root of IEEE 754 are used, whose results are exact, and no function of a math library,
// whose last bit is its own.
#pragma once

#include <cstdint>

#include "pipeline/random/random_key.h"

namespace stoker {

// Returns a number in [0, 1]. It uses draws `first_draw`, `first_draw` + 1 and so on of `key`, on
// average 2.5 of them. REQUIRES: alpha is in [1e-3, 1e3].
// Up to 1/2: Joehnk, "Erzeugung von betaverteilten und gammaverteilten Zufallszahlen", Metrika 8
// (1964). Above: Ulrich's polar method (1984) as in Devroye, "Non-Uniform Random Variate
// Generation" (1986), section IX.4.
double symmetric_beta(const RandomKey& key, uint32_t first_draw, double alpha);

// The natural logarithm and the exponential function, to a few units of the last place.
double portable_log(double value);  // REQUIRES: a normal number above 0
double portable_exp(double value);  // 0 for less than -700. REQUIRES: at most 700

}  // namespace stoker
