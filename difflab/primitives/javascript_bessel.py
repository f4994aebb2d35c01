"""Bessel and Airy functions of real order in JavaScript.

H = J + iY is an integral along its path of steepest descent (DLMF 10.9.18), and K one of a positive
integrand (10.32.9), both by the trapezoidal rule, which converges exponentially. I is its power
series, and so is J where that does not cancel. The recurrence leads from two orders below 2 to all
others, for J beyond the argument downwards.
"""

from __future__ import annotations

__all__ = ["BESSEL"]

BESSEL = (
    """\
function hankel(n, x) {
    const h = 1.0 / (x > 16.0 ? 2.5 * sqrt(x) : 10.0);
    let real = 0.0, imaginary = 0.0;
    for (const side of [1.0, -1.0]) {
        for (let k = side > 0.0 ? 0.0 : 1.0; ; k++) {
            const u = side * k * h, fall = x * sinh(u) * tanh(u);
            if (!(fall - n * abs(u) < 60.0)) break;
            const turn = -2.0 * n * atan(tanh(0.5 * u)), slope = 1.0 / cosh(u);
            const weight = h * exp(-fall - n * u), c = weight * cos(turn), s = weight * sin(turn);
            real += c - s * slope;
            imaginary += s + c * slope;
        }
    }
    const phase = 0.5 * PI * n, c = cos(phase), s = sin(phase);
    const a = (cos(x) * c + sin(x) * s) / PI, b = (sin(x) * c - cos(x) * s) / PI;
    return [a * imaginary + b * real, b * imaginary - a * real];
}""",
    """\
function bessel_series(n, x, sign) {
    const square = sign * 0.25 * x * x;
    let term = 1.0, sum = 1.0;
    for (let k = 1.0; abs(term) > 1e-17 * abs(sum); k++) {
        term *= square / (k * (n + k));
        sum += term;
    }
    const first = n < 100.0 ? pow(0.5 * x, n) / tgamma(n + 1.0)
        : exp(n * log(0.5 * x) - lgamma(n + 1.0));
    return first * sum;
}""",
    """\
function besselj(n, x) {
    const whole = n == floor(n), odd = n % 2.0 != 0.0;
    if (x < 0.0) return whole ? (odd ? -1.0 : 1.0) * besselj(n, -x) : NaN;
    if (n < 0.0 && whole) return (odd ? -1.0 : 1.0) * besselj(-n, x);
    if (n < 0.0) return cospi(n) * besselj(-n, x) + sinpi(n) * bessely(-n, x);
    if (x == Infinity) return 0.0;
    if (x * x < 4.0 * (n + 1.0)) return bessel_series(n, x, -1.0);
    const first = n - floor(n), [j] = hankel(first, x), [after] = hankel(first + 1.0, x);
    let [low, high] = [j, after];
    if (n <= x) {
        for (let m = first + 1.0; m < n + 0.5; m++) [low, high] = [high, 2.0 * m / x * high - low];
        return low;
    }
    const found = [1e-250, 0.0];
    for (let m = ceil(n + 40.0 + 2.0 * sqrt(40.0 * n)) + first; m > first + 0.5; m--) {
        found.unshift(2.0 * m / x * found[0] - found[1]);
        if (abs(found[0]) > 1e250) found.forEach((value, k) => { found[k] = value * 1e-250; });
    }
    return found[floor(n)] * (abs(j) > abs(after) ? j / found[0] : after / found[1]);
}""",
    """\
function bessely(n, x) {
    if (!(x >= 0.0)) return NaN;
    if (n < 0.0 && n == floor(n)) return (n % 2.0 != 0.0 ? -1.0 : 1.0) * bessely(-n, x);
    if (n < 0.0) return cospi(n) * bessely(-n, x) - sinpi(n) * besselj(-n, x);
    if (x == 0.0) return -Infinity;
    if (x == Infinity) return 0.0;
    const first = n - floor(n);
    let [low, high] = [hankel(first, x)[1], hankel(first + 1.0, x)[1]];
    for (let m = first + 1.0; m < n + 0.5; m++) [low, high] = [high, 2.0 * m / x * high - low];
    return low;
}""",
    """\
function besseli(n, x) {
    const whole = n == floor(n);
    if (x < 0.0) return whole ? (n % 2.0 != 0.0 ? -1.0 : 1.0) * besseli(n, -x) : NaN;
    if (n < 0.0 && whole) return besseli(-n, x);
    if (n < 0.0) return besseli(-n, x) - 2.0 / PI * sinpi(n) * besselk(n, x);
    return x == Infinity ? x : bessel_series(n, x, 1.0);
}""",
    """\
function besselk(n, x) {
    if (!(x > 0.0)) return x == 0.0 ? Infinity : NaN;
    if (n < 0.0) return besselk(-n, x);
    if (x > 750.0) return 0.0;
    const size = sqrt(n * n + x * x), h = 1.0 / (size > 16.0 ? 2.0 * sqrt(size) : 8.0);
    let sum = 0.5;
    for (let k = 1.0; ; k++) {
        const t = k * h, s = sinh(0.5 * t), fall = 2.0 * x * s * s;
        if (!(fall - n * t < 60.0)) break;
        sum += 0.5 * (exp(n * t - fall) + exp(-n * t - fall));
    }
    return exp(-x) * h * sum;
}""",
    """\
function cospi(x) {
    return sinpi(abs(x) + 0.5);
}""",
    """\
function airy_series(x) {
    let a = 1.0, b = x, f = a, g = b, df = 0.0, dg = 1.0;
    for (let k = 3.0; k < 40.0; k += 3.0) {
        df += x * x * a / (k - 1.0);
        dg += x * b / k * x;
        a *= x * x * x / ((k - 1.0) * k);
        b *= x * x * x / (k * (k + 1.0));
        f += a;
        g += b;
    }
    return [f, g, df, dg];
}""",
    """\
function airy(x, bi, prime) {
    const third = prime ? 2.0 / 3.0 : 1.0 / 3.0, size = abs(x), z = size * sqrt(size) / 1.5;
    if (size < 1.0) {
        const [f, g, df, dg] = airy_series(x), scale = bi ? 1.7320508075688772 : 1.0;
        const [even, odd] = prime ? [df, dg] : [f, g], sign = bi ? 1.0 : -1.0;
        return scale * (0.3550280538878172 * even + sign * 0.2588194037928068 * odd);
    }
    const root = 0.5773502691896258, part = prime ? size : sqrt(size);
    if (x > 0.0) {
        const sign = prime ? -1.0 : 1.0;
        if (!bi) return x > 110.0 ? 0.0 : sign * part * root / PI * besselk(third, z);
        return z > 720.0 ? Infinity : part * root * (besseli(third, z) + besseli(-third, z));
    }
    const [j, y] = hankel(third, z);
    if (!prime) return 0.5 * part * (bi ? -(root * j + y) : j - root * y);
    return 0.5 * part * (bi ? root * j - y : j + root * y);
}""",
)
"""Definitions over the members of `Math`, the gamma function and each other."""
