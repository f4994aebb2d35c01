// Finite differences beside the exact derivative: the step is a slider, the error a curve.

const CURVE = { width: 420, height: 206, left: 46, right: 10, top: 26, bottom: 30 };
const LEAST = -16, LARGEST = 1, DEEPEST = -17;

function makeDifference(place, changed) {
    const slider = made("input", { type: "range", min: String(LEAST), max: String(LARGEST), step: "0.25", id: "h", "aria-label": "step h, as a power of ten" });
    slider.addEventListener("input", () => changed(Number(slider.value)));
    const said = made("p", {}), label = made("label", { for: "h" });
    const svg = drawn("svg", { viewBox: `0 0 ${CURVE.width} ${CURVE.height}`, width: "100%", role: "img", "aria-label": "error of difference quotients against the step" });
    svg.style.maxWidth = `${1.4 * CURVE.width}px`;
    place.replaceChildren(made("div", { class: "input" }, label, slider, made("span")), said, svg);
    return { slider, said, label, svg };
}

function showDifference(panel, program, run, exponent) {
    const [name] = program.data.inputs[run.seed], [label, output] = program.data.outputs[run.output];
    const exact = run.sweep.bars.get(run.seed) ?? 0;
    const error = (value) => Math.abs(value - exact) / (Math.abs(exact) || 1);
    const h = 10 ** exponent, estimates = quotients(program, run.point, run.seed, output, h);
    panel.slider.value = exponent;
    panel.label.textContent = `h = ${shown(h, 3)}`;
    panel.said.replaceChildren(
        `∂${label}/∂${name}: central (f(${name}+h) − f(${name}−h))/2h = ${shown(estimates.central, 10)}, error ${shown(error(estimates.central), 2)}; `,
        `one-sided ${shown(estimates.onesided, 10)}, error ${shown(error(estimates.onesided), 2)}. Automatic differentiation: ${shown(exact, 10)}.`);
    const { width, height, left, right, top, bottom } = CURVE;
    const x = (power) => left + (power - LEAST) / (LARGEST - LEAST) * (width - left - right);
    const y = (value) => top + Math.min(1, Math.max(0, (1 - value) / (1 - DEEPEST))) * (height - top - bottom);
    const logged = (value) => Math.max(DEEPEST, Math.log10(error(value)));
    const curves = { central: [], onesided: [] };
    const apart = program.steps.length > 1000 ? 1 : 0.25;
    for (let power = LEAST; power <= LARGEST; power += apart) {
        const each = quotients(program, run.point, run.seed, output, 10 ** power);
        for (const kind of Object.keys(curves))
            if (Number.isFinite(each[kind])) curves[kind].push(`${x(power).toFixed(1)},${y(logged(each[kind])).toFixed(1)}`);
    }
    const parts = [drawn("path", { class: "axis", d: `M${left},${top} V${height - bottom} H${width - right}` })];
    const text = (content, at) => drawn("text", { "font-size": "11", ...at }, content);
    for (const power of [-16, -12, -8, -4, 0])
        parts.push(text(power === 0 ? "h = 1" : `1e${power}`.replace("-", "−"), { x: x(power), y: height - bottom + 15, "text-anchor": "middle" }),
            text(power === 0 ? "error 1" : `1e${power}`.replace("-", "−"), { x: left - 4, y: y(power) + 4, "text-anchor": "end" }));
    for (const [kind, points] of Object.entries(curves))
        parts.push(drawn("polyline", { class: `curve ${kind}`, points: points.join(" ") }));
    for (const kind of Object.keys(curves))
        if (Number.isFinite(estimates[kind]))
            parts.push(drawn("circle", { class: `dot ${kind}`, cx: x(exponent), cy: y(logged(estimates[kind])), r: 5 }));
    parts.push(text("—— central   – – one-sided", { x: width - right, y: top - 8, "text-anchor": "end" }));
    panel.svg.replaceChildren(...parts);
}
