// The picture: laid out by difflab, drawn once, and updated at each step.

const SVG = "http://www.w3.org/2000/svg";

function drawn(name, attributes, ...children) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
}

function head([x, y], horizontal) {
    const points = horizontal
        ? [[x, y], [x - 9, y - 4.5], [x - 9, y + 4.5]]
        : [[x, y], [x - 4.5, y - 9], [x + 4.5, y - 9]];
    return points.map((point) => point.join(",")).join(" ");
}

const listed = ([first, count]) => Array.from({ length: count }, (_, k) => first + k);

function drawGraph(program, place) {
    const picture = program.data.picture, margin = 14;
    const svg = drawn("svg", {
        viewBox: `${-margin} ${-margin} ${picture.width + 2 * margin} ${picture.height + 2 * margin}`,
        width: picture.width + 2 * margin, height: picture.height + 2 * margin,
        role: "img", "aria-label": `computational graph: ${picture.summary}`,
    });
    const trunks = picture.trunks.map(([before, path]) => {
        const element = drawn("path", { class: "wire", d: path });
        svg.append(element);
        return { before, element };
    });
    const arrows = picture.arrows.map((arrow) => {
        const wire = drawn("path", { class: "wire", d: arrow.path });
        const tip = drawn("polygon", { class: "tip", points: head(arrow.tip, picture.horizontal) });
        const [x, y] = arrow.tip;
        const near = picture.horizontal ? { x: x - 12, y: y - 5, "text-anchor": "end" } : { x: x + 6, y: y - 12 };
        svg.append(wire, tip, drawn("text", { class: "mark", ...near }, arrow.label));
        return { ...arrow, wire, head: tip };
    });
    for (const [x, y] of picture.dots) svg.append(drawn("circle", { class: "tip", cx: x, cy: y, r: 3 }));
    const boxes = picture.boxes.map((box) => drawBox(svg, { ...box, nodes: box.nodes.flatMap(listed) }));
    const parts = drawn("g", {});
    svg.append(parts);
    place.replaceChildren(svg);
    const owner = new Map();
    boxes.forEach((box, k) => box.nodes.forEach((node) => owner.has(node) || owner.set(node, k)));
    return { svg, trunks, arrows, boxes, parts, owner };
}

function drawBox(svg, box) {
    const [x, y, width, height] = box.at, round = box.kind === "input" || box.kind === "output";
    const group = drawn("g", { class: `box ${box.kind}`, "data-n": box.nodes.join(" ") });
    group.append(drawn("title", {}, box.tip));
    const frame = { x: x - width / 2, y: y - height / 2, width, height };
    group.append(drawn("rect", { class: `body fill-${box.kind}`, ...frame, rx: round ? height / 2.4 : 5 }));
    const middle = { x, "text-anchor": "middle" }, several = box.nodes.length > 1;
    const top = box.kind === "constant" ? y + 5 : y - height / 2 + 20;
    box.lines.forEach((line, k) =>
        group.append(drawn("text", { class: "label", ...middle, y: top + 20 * k }, line)));
    if (box.caption) group.append(drawn("text", { class: "small", ...middle, y: y + height / 2 - 8 }, box.caption));
    const value = drawn("text", { class: "small value", ...middle, y: top + 18 });
    const derivative = drawn("text", { class: "small derivative", ...middle, y: top + 35 });
    const warning = drawn("g", { class: "warning" });
    if (!several && box.kind !== "constant") group.append(value, derivative);
    group.append(warning);
    svg.append(group);
    return { ...box, group, value, derivative, warning, several };
}

function tag(text, x, y, kind) {
    const width = 10 + 7.6 * text.length;
    return drawn("g", { class: kind },
        drawn("rect", { x: x - width / 2, y: y - 9, width, height: 17, rx: 5 }),
        drawn("text", { x, y: y + 4, "text-anchor": "middle" }, text));
}

// Writes a text into a box, drawn together where it is wider than the box.
function fit(element, text, width) {
    if (element.textContent === text) return;
    element.textContent = text;
    element.removeAttribute("textLength");
    if (element.getComputedTextLength() > width - 8) {
        element.setAttribute("textLength", width - 8);
        element.setAttribute("lengthAdjust", "spacingAndGlyphs");
    }
}

// Shows a view of the graph: numbers in boxes, what is reached, the current node and its arrows.
function updateGraph(graph, program, view) {
    const outputs = program.data.outputs.map(([, node]) => node);
    let output = 0;
    for (const box of graph.boxes) {
        const node = box.kind === "output" ? outputs[output++] : box.nodes[0];
        const numbers = box.kind === "output" && box.nodes.length === 0;
        const reached = box.nodes.length === 0 ? view.reached(node) : box.nodes.some(view.reached);
        const now = box.nodes.includes(view.now);
        box.group.classList.toggle("ahead", !reached && box.kind !== "constant");
        box.group.classList.toggle("now", now);
        if (box.several) continue;
        fit(box.value, view.value(node, box.kind !== "output"), box.at[2]);
        fit(box.derivative, numbers ? "" : view.derivative(node), box.at[2]);
        const alerts = numbers || box.kind === "constant" || !view.valued(node) ? [] : warnings(program, node, view.values);
        box.warning.replaceChildren(...alerts.slice(0, 1).map(([short]) =>
            tag(short, box.at[0] + box.at[2] / 2 - 6, box.at[1] - box.at[3] / 2, "warning")));
    }
    graph.parts.replaceChildren();
    const lit = new Set();
    for (const arrow of graph.arrows) {
        const [source, target] = arrow.ends.map((end) => graph.boxes[end].nodes[0]);
        const known = arrow.place !== null && target !== undefined && view.valued(target);
        const closed = known && !taken(program.step(target), arrow.place, view.values);
        const now = view.arrow(source, target, arrow.place);
        // A long arrow shares its trunks with others from the same source: its own lead back there.
        for (let k = now === null ? null : arrow.trunk; k !== null && !lit.has(k); k = graph.trunks[k].before)
            lit.add(k);
        for (const part of [arrow.wire, arrow.head]) {
            part.classList.toggle("now", now !== null);
            part.classList.toggle("untaken", closed);
        }
        if (now) {
            const length = arrow.wire.getTotalLength(), at = arrow.wire.getPointAtLength(length * 0.55);
            graph.parts.append(tag(now, at.x, at.y, "part"));
        }
    }
    graph.trunks.forEach((trunk, k) => trunk.element.classList.toggle("now", lit.has(k)));
}

function scrollToBox(graph, node, place) {
    const box = graph.boxes[graph.owner.get(node)];
    if (!box || place.scrollWidth <= place.clientWidth + 1 && place.scrollHeight <= place.clientHeight + 1) return;
    const [outer, inner] = [place.getBoundingClientRect(), box.group.getBoundingClientRect()];
    if (inner.left < outer.left || inner.right > outer.right)
        place.scrollLeft += (inner.left + inner.right - outer.left - outer.right) / 2;
    if (inner.top < outer.top || inner.bottom > outer.bottom)
        place.scrollTop += (inner.top + inner.bottom - outer.top - outer.bottom) / 2;
}
