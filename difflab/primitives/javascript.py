"""JavaScript's `Math`, and the error and gamma functions, which it lacks.

The rational approximations of erfc are those of fdlibm's ``s_erf.c`` (Sun Microsystems, 1993); the
gamma function is Lanczos's approximation with G. R. Pugh's method and the constants of Boost, which
CPython's `math` uses as well.
"""

from __future__ import annotations

__all__ = ["ERF", "ERFC", "LGAMMA", "MATH", "SHARED", "TGAMMA"]

MATH = frozenset(
    {
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "cbrt",
        "ceil",
        "cos",
        "cosh",
        "exp",
        "expm1",
        "floor",
        "fround",
        "hypot",
        "log",
        "log10",
        "log1p",
        "log2",
        "round",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "PI",
    }
)
"""Members of `Math` with the values of C99's functions; `pow` differs at 1 and -1."""

ERF = """\
function erf(x) {
    if (abs(x) >= 0.84375) return x > 0.0 ? 1.0 - erfc(x) : erfc(-x) - 1.0;
    const z = x * x;
    return x + x * (horner(z, [
        0.12837916709551256, -0.3250421072470015, -0.02848174957559851, -0.005770270296489442,
        -2.3763016656650163e-05,
    ]) / horner(z, [
        1.0, 0.39791722395915535, 0.0650222499887673, 0.005081306281875766, 0.00013249473800432164,
        -3.960228278775368e-06,
    ]));
}"""

ERFC = """\
function erfc(x) {
    if (abs(x) < 0.84375) return 1.0 - erf(x);
    if (x < 0.0) return 2.0 - erfc(-x);
    if (x < 1.25) return 0.15493708848953247 - horner(x - 1.0, [
        -0.0023621185607526594, 0.41485611868374833, -0.3722078760357013, 0.31834661990116175,
        -0.11089469428239668, 0.035478304325618236, -0.002166375594868791,
    ]) / horner(x - 1.0, [
        1.0, 0.10642088040084423, 0.540397917702171, 0.07182865441419627, 0.12617121980876164,
        0.01363708391202905, 0.011984499846799107,
    ]);
    if (x > 28.0) return 0.0;
    const z = fround(x);
    return exp(-z * z - 0.5625) * exp((z - x) * (z + x) + tail(x)) / x;
}"""

TGAMMA = """\
function tgamma(x) {
    const size = abs(x), y = size + 5.524680040776729583740234375;
    if (x == floor(x) && x <= 23.0) {
        if (x <= 0.0) return x == 0.0 ? 1.0 / x : NaN;
        let product = 1.0;
        for (let k = 2.0; k < x; k++) product *= k;
        return product;
    }
    if (size < 1e-20) return 1.0 / x;
    if (size > 200.0) return x < 0.0 ? 0.0 : Infinity;
    const rest = size > 5.524680040776729583740234375
        ? y - size - 5.524680040776729583740234375
        : y - 5.524680040776729583740234375 - size;
    const z = rest * 6.024680040776729583740234375 / y;
    const half = y ** (0.5 * size - 0.25), whole = y ** (size - 0.5);
    if (x > 0.0) {
        const r = lanczos(size) / exp(y) * (1.0 + z);
        return size < 140.0 ? r * whole : r * half * half;
    }
    const r = -PI / sinpi(size) / size * exp(y) / lanczos(size) * (1.0 - z);
    return size < 140.0 ? r / whole : r / half / half;
}"""

LGAMMA = """\
function lgamma(x) {
    const size = abs(x);
    if (x == floor(x) && x <= 2.0) return x <= 0.0 ? Infinity : 0.0;
    if (size == Infinity) return size;
    if (size < 1e-20) return -log(size);
    if (x > 0.0 && x < 100.0) return log(tgamma(x));
    const r = log(lanczos(size)) - 6.024680040776729583740234375
        + (size - 0.5) * (log(size + 5.524680040776729583740234375) - 1.0);
    return x > 0.0 ? r : log(PI) - log(abs(sinpi(size))) - log(size) - r;
}"""

SHARED = (
    """\
function tail(x) {
    const s = 1.0 / (x * x);
    return x < 1.0 / 0.35 ? horner(s, [
        -0.009864944034847148, -0.6938585727071818, -10.558626225323291, -62.375332450326006,
        -162.39666946257347, -184.60509290671104, -81.2874355063066, -9.814329344169145,
    ]) / horner(s, [
        1.0, 19.651271667439257, 137.65775414351904, 434.56587747522923, 645.3872717332679,
        429.00814002756783, 108.63500554177944, 6.570249770319282, -0.0604244152148581,
    ]) : horner(s, [
        -0.0098649429247001, -0.799283237680523, -17.757954917754752, -160.63638485582192,
        -637.5664433683896, -1025.0951316110772, -483.5191916086514,
    ]) / horner(s, [
        1.0, 30.33806074348246, 325.7925129965739, 1536.729586084437, 3199.8582195085955,
        2553.0504064331644, 474.52854120695537, -22.44095244658582,
    ]);
}""",
    """\
function horner(x, coefficients) {
    return coefficients.reduceRight((sum, coefficient) => sum * x + coefficient, 0.0);
}""",
    """\
function sinpi(x) {
    const y = x % 2.0, n = floor(2.0 * y + 0.5);
    if (n == 1.0) return cos(PI * (y - 0.5));
    if (n == 2.0) return sin(PI * (1.0 - y));
    if (n == 3.0) return -cos(PI * (y - 1.5));
    return sin(PI * (n == 4.0 ? y - 2.0 : y));
}""",
    """\
function lanczos(x) {
    const above = [
        23531376880.41076, 42919803642.6491, 35711959237.35567, 17921034426.03721,
        6039542586.352028, 1439720407.3117216, 248874557.86205417, 31426415.5854004,
        2876370.6289353725, 186056.26539522348, 8071.672002365816, 210.82427775157936,
        2.5066282746310002,
    ];
    const below = [
        0.0, 39916800.0, 120543840.0, 150917976.0, 105258076.0, 45995730.0, 13339535.0, 2637558.0,
        357423.0, 32670.0, 1925.0, 66.0, 1.0,
    ];
    if (x < 5.0) return horner(x, above) / horner(x, below);
    return horner(1.0 / x, above.reverse()) / horner(1.0 / x, below.reverse());
}""",
)
"""Functions that the others call."""
