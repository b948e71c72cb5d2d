"use strict";
(function () {
    const MARGIN = 6;
    const svg = document.documentElement;
    const ruler = document.createElementNS("http://www.w3.org/1999/xhtml", "canvas").getContext("2d");
    const font = getComputedStyle(svg);
    ruler.font = font.fontSize + " " + font.fontFamily;
    const element = (id) => document.getElementById(id);
    const frames = Array.from(element("frames").children, (g) => ({
        g,
        x: Number(g.dataset.x),
        w: Number(g.dataset.w),
        name: g.dataset.n,
        title: g.querySelector("title").textContent,
        rect: g.querySelector("rect"),
        text: g.querySelector("text"),
        y: Number(g.querySelector("rect").getAttribute("y")),
    }));
    const whole = frames[0];
    let shown = whole;

    function place(frame) {
        // Frames that enclose the shown frame are as wide as the window; frames inside it keep their share of its width.
        const encloses = frame.x <= shown.x && frame.x + frame.w >= shown.x + shown.w && frame.y >= shown.y;
        const inside = frame.x >= shown.x && frame.x + frame.w <= shown.x + shown.w && frame.y <= shown.y;
        frame.g.classList.toggle("hidden", !encloses && !inside);
        frame.g.classList.toggle("outside", encloses && frame !== shown);
        if (!encloses && !inside) {
            return;
        }
        const scale = shown.w > 0 ? 100 / shown.w : 0;
        const x = encloses ? 0 : (frame.x - shown.x) * scale;
        const width = encloses ? 100 : frame.w * scale;
        frame.rect.setAttribute("x", x + "%");
        frame.rect.setAttribute("width", width + "%");
        frame.text.setAttribute("x", x + "%");
        frame.text.textContent = cut(frame.name, (width / 100) * svg.clientWidth - MARGIN);
    }

    function cut(name, room) {
        if (ruler.measureText(name).width <= room) {
            return name;
        }
        // The longest prefix that fits.
        let [fits, length] = [0, name.length];
        while (length - fits > 1) {
            const middle = (fits + length) >> 1;
            [fits, length] = ruler.measureText(name.slice(0, middle) + "…").width <= room ? [middle, length] : [fits, middle];
        }
        return fits < 2 ? "" : name.slice(0, fits) + "…";
    }

    function show(frame) {
        shown = frame;
        frames.forEach(place);
        element("reset").style.visibility = frame === whole ? "hidden" : "visible";
    }

    function search(pattern) {
        let expression = null;
        try {
            expression = pattern ? new RegExp(pattern) : null;
        } catch (error) {
            element("found").textContent = "not a regular expression";
            return;
        }
        // Of nested matches, only the outermost counts.
        const matches = frames.filter((frame) => {
            const match = expression !== null && expression.test(frame.name);
            frame.g.classList.toggle("match", match);
            return match;
        });
        matches.sort((a, b) => a.x - b.x || b.w - a.w);
        let sum = 0;
        let end = -1;
        for (const frame of matches) {
            if (frame.x >= end) {
                sum += frame.w;
                end = frame.x + frame.w;
            }
        }
        const part = whole.w > 0 ? ((100 * sum) / whole.w).toFixed(1) : "0.0";
        element("found").textContent = expression === null ? " " : "matching: " + part + "%";
    }

    for (const frame of frames) {
        frame.g.addEventListener("click", () => show(frame));
        frame.g.addEventListener("mouseover", () => (element("details").textContent = frame.title));
        frame.g.addEventListener("mouseout", () => (element("details").textContent = " "));
    }
    element("reset").addEventListener("click", () => show(whole));
    element("search").addEventListener("click", () => {
        const pattern = window.prompt("Names that match this regular expression:", "");
        if (pattern !== null) {
            search(pattern);
        }
    });
    window.addEventListener("resize", () => frames.forEach(place));
    window.addEventListener("keydown", (event) => {
        if (event.key === "Escape") {
            show(whole);
        } else if (event.key === "/") {
            event.preventDefault();
            element("search").dispatchEvent(new Event("click"));
        }
    });
    // For scripts that drive the page, and for links like graph.svg#search=crc32.
    window.flamegraph = { show: (name) => frames.some((f) => f.name === name && (show(f), true)), search };
    show(whole);
    const asked = /[#&]search=([^&]*)/.exec(window.location.hash);
    if (asked) {
        search(decodeURIComponent(asked[1]));
    }
})();
