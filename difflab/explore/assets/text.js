// Numbers and names as text: v₁, its tangent v̇₁ and its cotangent v̄₁.

const DOT = "\u0307", BAR = "\u0304";

function shown(x, digits = 6) {
    if (Number.isNaN(x)) return "nan";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
    if (x === 0) return "0";
    const size = Math.abs(x);
    const plain = size >= 1e-4 && size < 1e6;
    const text = plain ? String(Number(x.toPrecision(digits))) : x.toExponential(digits - 2);
    return text.replace(/\.?0+e/, "e").replace("e+", "e").replaceAll("-", "−");
}

function inserted(x) {
    const text = shown(x, 4);
    return text.startsWith("−") ? `(${text})` : text;
}

const LOWERED = "₀₁₂₃₄₅₆₇₈₉";

function pretty(name, mark = "") {
    const generated = /^v(\d+)$/.exec(name);
    if (generated) return "v" + mark + [...generated[1]].map((digit) => LOWERED[digit]).join("");
    return (name.slice(0, 1) + mark + name.slice(1)).normalize("NFC");
}

function coded(name, mark = "") {
    return name.replaceAll(", ", "][").replace(/(\[|$)/, mark + "$1");
}

function filled(template, slots) {
    return template.replace(/\{(\w+)\}/g, (_, slot) => slots[slot]);
}

function replaced(code, slots) {
    return code.replace(/\b(t|y|a\d)\b/g, (slot) => slots[slot] ?? slot);
}

function times(text, bar) {
    if (text === bar) return `${bar} × 1`;
    return text === `−${bar}` ? `${bar} × (−1)` : text;
}

function joined(terms) {
    return terms.join(" + ").replaceAll("+ −", "− ");
}
