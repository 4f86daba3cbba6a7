"""The HTML report in a real browser: every plot is drawn, in light and dark, without a request to anywhere."""
import html
import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

import gen_reference

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "simulate"
PROGRAM = gen_reference.program_path("kubectl-kwatt")
CHROMIUM = shutil.which("chromium")

pytestmark = [pytest.mark.long(30),
              pytest.mark.skipif(not PROGRAM.exists(), reason="kubectl-kwatt is not built"),
              pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (cmake/debian-packages.txt)")]

# Before anything of the page runs: what goes wrong in it is noted.
WATCH = """<script>var failures=[];
addEventListener("error",function(event){failures.push(event.message||String(event.target));},true);
["error","warn"].forEach(function(kind){console[kind]=function(text){failures.push(kind+": "+text);};});</script>"""
# Appended to a copy of the page: what the browser has made of it, as JSON in an element of its own.
MEASURE = """<pre id="measured"></pre><script>
(function(){
  var plots=[].map.call(document.querySelectorAll("svg.plot"),function(svg){
    var marks=svg.querySelectorAll("path.line,rect");
    return {title:svg.getAttribute("aria-label"),width:svg.getBoundingClientRect().width,
            marks:[].map.call(marks,function(mark){
              var box=mark.getBBox(),style=getComputedStyle(mark);
              return {width:box.width,height:box.height,fill:style.fill,stroke:style.stroke};
            })};
  });
  var button=document.querySelector(".legend button");
  button.click();
  var hidden=[].filter.call(document.querySelectorAll("path.line"),function(path){
    return path.dataset.series===button.dataset.series&&getComputedStyle(path).display==="none";
  }).length;
  document.getElementById("measured").textContent=JSON.stringify({
    plots:plots,hidden:hidden,failures:failures,text:getComputedStyle(document.body).color,
    background:getComputedStyle(document.body).backgroundColor,
    requests:performance.getEntriesByType("resource").length,wide:document.documentElement.scrollWidth>innerWidth});
})();
</script></body>"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    page = tmp_path_factory.mktemp("report") / "report.html"
    subprocess.run([PROGRAM, "compare", "--scenario", EXAMPLES / "scenario.yaml", "--strategies", "FCFS,EnergyAware",
                    "--html", page, "-o", "csv"], check=True, capture_output=True, timeout=120,
                   env={"PATH": os.environ["PATH"]})
    return page


def chromium(page, tmp_path, *options):
    return subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                           "--no-first-run", f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1280,900",
                           *options, page.as_uri()], capture_output=True, text=True, timeout=120, check=False)


def look(report, tmp_path, *options):
    page = tmp_path / "page.html"
    text = report.read_text()
    start, end = text.index("<head>") + len("<head>"), text.rindex("</body>")
    page.write_text(text[:start] + WATCH + text[start:end] + MEASURE + "</html>")
    done = chromium(page, tmp_path, *options, "--dump-dom")
    measured = re.search(r'<pre id="measured">(.*?)</pre>', done.stdout, re.S)
    assert measured and measured.group(1), done.stderr[-2000:]
    return json.loads(html.unescape(measured.group(1)))


def test_every_plot_is_drawn(report, tmp_path):
    seen = look(report, tmp_path)
    titles = [plot["title"] for plot in seen["plots"]]
    assert len(titles) == 13
    for word in ("Energy (kWh)", "CO2 (kg)", "CI-adjusted cost", "Turnaround, mean (s)", "Power (kW)", "Carbon (kg/h)",
                 "Waiting time, cumulative (% of jobs)", "CPU in use (% of all machines)"):
        assert word in titles
    for plot in seen["plots"]:
        assert plot["width"] > 300, plot["title"]
        assert len(plot["marks"]) == 2, plot["title"]
        for mark in plot["marks"]:
            assert mark["width"] > 0 or mark["height"] > 0, plot["title"]
    energy = next(plot for plot in seen["plots"] if plot["title"] == "Energy (kWh)")
    assert all(mark["width"] > 50 and mark["fill"] not in ("none", "rgb(0, 0, 0)") for mark in energy["marks"])
    power = next(plot for plot in seen["plots"] if plot["title"] == "Power (kW)")
    assert all(mark["width"] > 300 and mark["height"] > 20 and mark["stroke"] != "none" for mark in power["marks"])
    assert len({mark["stroke"] for mark in power["marks"]}) == 2
    assert seen["failures"] == []
    assert seen["hidden"] >= 7 and seen["requests"] == 0 and not seen["wide"]


LIGHT, DARK = "--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"


def luminance(colour):
    """0 black to 1 white, of "rgb(20, 24, 28)"."""
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


def test_it_is_light_or_dark_as_the_reader_has_it(report, tmp_path):
    light, dark = look(report, tmp_path, LIGHT), look(report, tmp_path, DARK)
    assert {light["background"], dark["background"]} == {"rgb(255, 255, 255)", "rgb(20, 24, 28)"}
    for seen in (light, dark):
        paper = luminance(seen["background"])
        assert abs(luminance(seen["text"]) - paper) > 0.5 and seen["failures"] == []
        for plot in seen["plots"]:
            for mark in plot["marks"]:
                colour = mark["stroke"] if mark["fill"] == "none" else mark["fill"]
                assert abs(luminance(colour) - paper) > 0.15, f"{plot['title']}: {colour} on {seen['background']}"


def test_a_picture_of_it_is_kept_for_people(report, tmp_path):
    """build/pictures/report-light.png and -dark.png: the whole page, as a reader would see it."""
    folder = ROOT / "build" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    sizes = []
    for name, option in (("light", LIGHT), ("dark", DARK)):
        picture = folder / f"report-{name}.png"
        picture.unlink(missing_ok=True)
        done = chromium(report, tmp_path, option, "--window-size=1280,2500", f"--screenshot={picture}")
        assert picture.exists(), done.stderr[-2000:]
        content = picture.read_bytes()
        assert struct.unpack(">II", content[16:24]) == (1280, 2500)
        sizes.append(len(content))
    # An empty page of this size takes some 15 kB.
    assert min(sizes) > 60_000
