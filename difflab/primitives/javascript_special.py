"""Special functions in JavaScript, by series, continued fractions and quadrature.

Those of the rows that C has no function for: the gamma, beta and zeta functions, and those of the
normal distribution. Bessel functions are in `difflab.primitives.javascript_bessel`.
"""

from __future__ import annotations

__all__ = ["SPECIAL"]

_GAMMA = (
    """\
function hurwitz(s, q) {
    if (!(s > 1.0)) return s == 1.0 ? Infinity : NaN;
    const last = 12.0 + 2.0 * (s < 1000.0 ? s : 1000.0);
    let n = 0.0, sum = 0.0;
    for (; q + n < last; n++) sum += pow(q + n, -s);
    const y = q + n, u = 1.0 / (y * y), power = pow(y, -s);
    let term = s * power / y, tail = 0.0, k = 1.0;
    for (const number of [
        1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
        1 / 74724249600, -3617 / 10670622842880000,
    ]) {
        tail += number * term;
        term *= (s + k) * (s + k + 1.0) * u;
        k += 2.0;
    }
    return sum + (pow(y, 1.0 - s) / (s - 1.0) + (0.5 * power + tail));
}""",
    """\
function zeta(s, q) {
    return q > 0.0 ? hurwitz(s, q) : NaN;
}""",
    """\
function polygamma(k, x) {
    if (k == 0.0) return digamma(x);
    if (k < 0.0 || k != floor(k)) return NaN;
    const sign = k % 2.0 == 0.0 ? -1.0 : 1.0;
    if (x == -Infinity) return sign * Infinity;
    if (x < -50.0) {
        const near = x - floor(x) - 1.0;
        return polygamma(k, near) - sign * (polygamma(k, 1.0 - x) - polygamma(k, 1.0 - near));
    }
    return sign * tgamma(k + 1.0) * hurwitz(k + 1.0, x);
}""",
    """\
function dgammainc(a, x, lower = 0.0) {
    const power = a - 1.0 - lower;
    if (a < 100.0 && x < 750.0) return pow(x, power) * exp(-x) / tgamma(a);
    return exp((power == 0.0 ? 0.0 : power * log(x)) - x - lgamma(a));
}""",
    """\
function gammainc_derivative(n, a, x) {
    if (!(a > 0.0 && x >= 0.0 && n >= 1.0 && n <= 20.0 && n == floor(n))) return NaN;
    if (x == Infinity) return 0.0;
    let sum = 0.0, weight = n % 2.0 == 0.0 ? -1.0 : 1.0;
    for (let j = 0.0; j < n && weight != 0.0; j++) {
        sum += weight * dgammainc(a, x, j);
        weight *= (a - 1.0 - j) * (j + 1.0 - n) / (j + 1.0);
    }
    return sum;
}""",
    """\
function gammainc(a, x) {
    if (!(a > 0.0 && x >= 0.0)) return NaN;
    if (a == Infinity) return x == Infinity ? NaN : 0.0;
    if (x >= a + 1.0) return 1.0 - gammaincc(a, x);
    let term = 1.0, sum = 1.0;
    for (let k = 1.0; term > 1e-17 * sum; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return dgammainc(a + 1.0, x) * sum;
}""",
    """\
function gammaincc(a, x) {
    if (!(a > 0.0 && x >= 0.0)) return NaN;
    if (a == Infinity) return x == Infinity ? NaN : 1.0;
    if (x < a + 1.0) return 1.0 - gammainc(a, x);
    if (x == Infinity) return 0.0;
    const first = x + 1.0 - a;
    return dgammainc(a, x) * x * fraction(first, (k) => k * (a - k), (k) => first + 2.0 * k);
}""",
    """\
function beta(a, b) {
    return a + b < 100.0 ? tgamma(a) / tgamma(a + b) * tgamma(b) * (a > 0.0 && b > 0.0 ? 1.0 : NaN)
        : exp(betaln(a, b));
}""",
    """\
function betaln(a, b) {
    if (!(a > 0.0 && b > 0.0)) return NaN;
    const [small, large] = a < b ? [a, b] : [b, a];
    if (small * small < 1e-17 * large) return lgamma(small) - small * log(large);
    return a + b < 100.0 ? log(beta(a, b)) : lgamma(a) + lgamma(b) - lgamma(a + b);
}""",
    """\
function dbetainc(a, b, x, lower = 0.0, other = 0.0) {
    const [p, q] = [a - 1.0 - lower, b - 1.0 - other];
    if (a + b < 100.0) return pow(x, p) * pow(1.0 - x, q) * (tgamma(a + b) / tgamma(a) / tgamma(b));
    const part = (c, y) => c == 0.0 ? 0.0 : c * y;
    return exp(part(p, log(x)) + part(q, log1p(-x)) - betaln(a, b));
}""",
    """\
function betainc_derivative(n, a, b, x) {
    if (!(a > 0.0 && b > 0.0 && x >= 0.0 && x <= 1.0)) return NaN;
    if (!(n >= 1.0 && n <= 20.0 && n == floor(n))) return NaN;
    const falling = (c, count) => {
        let product = 1.0;
        for (let k = 0.0; k < count; k++) product *= c - k;
        return product;
    };
    let sum = 0.0, chosen = n % 2.0 == 0.0 ? -1.0 : 1.0;
    for (let j = 0.0; j < n; j++) {
        const weight = chosen * falling(a - 1.0, j) * falling(b - 1.0, n - 1.0 - j);
        if (weight != 0.0) sum += weight * dbetainc(a, b, x, j, n - 1.0 - j);
        chosen *= (j + 1.0 - n) / (j + 1.0);
    }
    return sum;
}""",
    """\
function polygamma_difference(n, a, b) {
    if (!(a > 0.0 && b > 0.0 && n >= 0.0 && n <= 20.0 && n == floor(n))) return NaN;
    const powers = (m, c) => -expm1(-m * log1p(b / c)) * pow(c, -m);
    const far = a + 16.0, size = tgamma(n + 1.0);
    const term = (k) => tgamma(2.0 * k + n) / tgamma(2.0 * k + 1.0) * powers(2.0 * k + n, far);
    const numbers = [
        1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
        -174611 / 330,
    ];
    let sum = 0.0;
    for (let k = 10.0; k > 0.0; k--) sum += numbers[k - 1] * term(k);
    sum += 0.5 * size * powers(n + 1.0, far);
    sum += n > 0.0 ? tgamma(n) * powers(n, far) : log1p(b / far);
    for (let k = 15.0; k >= 0.0; k--) sum += size * powers(n + 1.0, a + k);
    return n % 2.0 == 0.0 ? -sum : sum;
}""",
    """\
function betainc(a, b, x) {
    if (!(a > 0.0 && b > 0.0 && x >= 0.0 && x <= 1.0)) return NaN;
    if (x > (a + 1.0) / (a + b + 2.0)) return 1.0 - betainc(b, a, 1.0 - x);
    if (x == 0.0) return 0.0;
    const above = (n) => {
        const k = floor(0.5 * n), c = a + n;
        return (n % 2.0 == 0.0 ? k * (b - k) : -(a + k) * (a + b + k)) * x / (c * (c - 1.0));
    };
    return dbetainc(a, b, x) * (x * (1.0 - x) / a) * fraction(1.0, above, () => 1.0);
}""",
    """\
function fraction(first, above, below) {
    let c = Infinity, d = 1.0 / first, value = d;
    for (let k = 1; k < 2000; k++) {
        const [p, q] = [above(k), below(k)];
        d = 1.0 / (q + p * d || 1e-300);
        c = q + p / c || 1e-300;
        value *= c * d;
        if (!(abs(c * d - 1.0) > 1e-16)) break;
    }
    return value;
}""",
)

_NORMAL = (
    """\
function expsquare(x, factor) {
    const y = abs(x) < 40.0 ? x : x < 0.0 ? -40.0 : x > 0.0 ? 40.0 : x;
    const z = floor(16.0 * y + 0.5) * 0.0625;
    return exp(factor * z * z) * exp(factor * (y - z) * (y + z));
}""",
    """\
function erfcx(x) {
    return x < 1.25 ? expsquare(x, 1.0) * erfc(x) : exp(tail(x) - 0.5625) / x;
}""",
    """\
function erfi(x) {
    if (abs(x) > 27.0) return x > 0.0 ? Infinity : -Infinity;
    if (abs(x) > 2.0) return derfi(x) * dawsn_derivative(0.0, x);
    let term = x, sum = x;
    for (let k = 1.0; abs(term) > 1e-17 * abs(sum); k++) {
        term *= x * x / k;
        sum += term / (2.0 * k + 1.0);
    }
    return 1.1283791670955126 * sum;
}""",
    """\
function derfi(x) {
    return 1.1283791670955126 * expsquare(x, 1.0);
}""",
    """\
function dndtr(x) {
    return 0.3989422804014327 * expsquare(x, -0.5);
}""",
    """\
function ndtr(x) {
    return x < -1.0 ? 0.5 * erfcx(-0.7071067811865476 * x) * expsquare(x, -0.5)
        : 0.5 * erfc(-0.7071067811865476 * x);
}""",
    """\
function log_ndtr(x) {
    return x < -1.0 ? log(0.5 * erfcx(-0.7071067811865476 * x)) - 0.5 * (x * x) : log1p(-ndtr(-x));
}""",
    """\
function erfcinv(x) {
    if (x >= 0.5) return x <= 1.5 ? erfinv(1.0 - x) : -erfcinv(2.0 - x);
    if (!(x > 0.0)) return x == 0.0 ? Infinity : NaN;
    const l = log(x * (2.0 - x)), t = 4.330746750799873 + 0.5 * l;
    let y = sqrt(sqrt(t * t - l / 0.147) - t);
    for (let k = 0; k < 4 && x < 1e-290; k++) {
        const q = 0.5 / (y * y), tail = 15.0 - q * (105.0 - 945.0 * q);
        y = sqrt(-log(x) - log(1.7724538509055159 * y / (1.0 - q * (1.0 - q * (3.0 - q * tail)))));
    }
    for (let k = 0; k < 3 && x >= 1e-290; k++) {
        const u = (x - erfc(y)) * 0.886226925452758 * expsquare(y, 1.0);
        y -= u / (1.0 + y * u);
    }
    return y;
}""",
    """\
function derfcinv(x) {
    return 0.886226925452758 * expsquare(erfcinv(x), 1.0);
}""",
    """\
function ndtri(x) {
    return -1.4142135623730951 * erfcinv(2.0 * x);
}""",
    """\
function dndtri(x) {
    return expsquare(ndtri(x), 0.5) / 0.3989422804014327;
}""",
)

_DAWSON = (
    """\
function dawsn_derivative(n, x) {
    if (!(n >= 0.0 && n <= 20.0 && n == floor(n))) return NaN;
    const size = abs(x), odd = n % 2.0 == 1.0;
    if (size < 0.5) return dawsn_taylor(n, x);
    const value = size < 30.0 ? dawsn_contour(n, size) : dawsn_asymptotic(n, size);
    return x < 0.0 && !odd ? -value : value;
}""",
    """\
function dawsn_taylor(n, x) {
    const half = floor(0.5 * n), odd = n % 2.0 == 1.0, below = odd ? 0.5 : 1.5;
    let sum = 1.0;
    for (let k = 39.0; k >= 0.0; k--)
        sum = 1.0 - (half + 1.0 + k) / ((below + k) * (k + 1.0)) * x * x * sum;
    return pow(-4.0, half) * tgamma(half + 1.0) * sum * (odd ? 1.0 : x);
}""",
    """\
function dawsn_contour(n, x) {
    const depth = sqrt(n > 6.0 ? n / 6.0 : 1.0);
    const h = floor(256.0 * PI * depth / (45.0 + 4.0 * n)) / 128.0;
    const last = ceil((6.9 + 0.1 * n) / h);
    let sum = 0.0;
    for (let k = -last; k <= last; k++) {
        const t = k * h, u = x - t, r = 1.0 / (u * u + depth * depth);
        const [a, b] = [u * r, -depth * r];
        let [p, q] = [a, b];
        for (let m = 0; m < n; m++) [p, q] = [p * a - q * b, p * b + q * a];
        sum += exp(depth * depth - t * t) * (cos(2.0 * depth * t) * p - sin(2.0 * depth * t) * q);
    }
    return 0.28209479177387814 * h * (n % 2.0 == 1.0 ? -1.0 : 1.0) * tgamma(n + 1.0) * sum;
}""",
    """\
function dawsn_asymptotic(n, x) {
    let sum = 1.0;
    for (let k = 39.0; k >= 0.0; k--)
        sum = 1.0 + (2.0 * k + 1.0 + n) * (2.0 * k + 2.0 + n) / (4.0 * (k + 1.0)) / x / x * sum;
    for (let k = n; k > 0.0; k--) sum *= -k / x;
    return 0.5 / x * sum;
}""",
)

SPECIAL = (*_GAMMA, *_NORMAL, *_DAWSON)
"""Definitions over the members of `Math` and each other."""
