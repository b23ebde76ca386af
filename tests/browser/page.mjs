// Opens a page that `legion-contracts check --html` wrote, uses it as a person would, and prints what it saw as JSON.
// Usage: node page.mjs CHROMIUM PAGE PROFILE-FOLDER. The test that starts this judges what is printed.
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const WAIT_MS = 10_000;

const [executablePath, file, profile] = process.argv.slice(2);
const address = pathToFileURL(file).href;
const saw = { requests: [], console: [], errors: [] };

const context = await chromium.launchPersistentContext(profile, {
  executablePath, args: FLAGS, offline: true, colorScheme: "light", viewport: { width: 1280, height: 900 },
});
try {
  context.setDefaultTimeout(WAIT_MS);
  const page = context.pages()[0] ?? (await context.newPage());
  page.on("request", (request) => saw.requests.push(request.url()));
  page.on("console", (message) => saw.console.push(message.text()));
  page.on("pageerror", (error) => saw.errors.push(String(error)));
  await page.goto(address);
  await look(page);
  saw.quiet = { requests: [...saw.requests], console: [...saw.console], errors: [...saw.errors] };
  saw.attack = await attack(page);
} finally {
  await context.close();
}
console.log(JSON.stringify({ ...saw, address }));

async function look(page) {
  saw.first = await state(page);
  saw.filters = await filters(page);
  saw.scenario = await scenario(page);
  saw.clause = await clause(page);
  saw.search = await search(page);
  saw.keyboard = await keyboard(page);
  saw.themes = await themes(page);
  saw.print = await print(page);
  saw.link = await link(page);
  saw.nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, input, select, a, summary, [role=region]")]
      .filter((one) => !(one.ariaLabel || one.labels?.length || one.textContent.trim() || one.getAttribute("aria-labelledby")))
      .map((one) => one.outerHTML));
}

function state(page) {
  return page.evaluate(() => ({
    shown: [...document.querySelectorAll(".entry")].filter((one) => one.checkVisibility()).map((one) => one.id),
    open: [...document.querySelectorAll(".entry[open]")].map((one) => one.id),
    status: document.querySelector(".shown").textContent,
    pressed: [...document.querySelectorAll(".filters button[aria-pressed=true]")].map((one) => one.dataset.value),
    none: document.querySelector(".none").checkVisibility(),
  }));
}

async function filters(page) {
  const told = {};
  await page.locator('button[data-group=verdict][data-value=FAIL]').click();
  told.failing = await state(page);
  await page.locator('button[data-group=host][data-value=socket]').click();
  told.failingOnSocket = await state(page);
  await page.getByRole("button", { name: "show all" }).click();
  told.all = await state(page);
  return told;
}

async function scenario(page) {
  const entry = page.locator("[id='scenario-page-passes']");
  const before = await entry.locator("svg.lanes").first().isVisible();
  await entry.locator("> summary").click();
  const drawing = entry.locator("svg.lanes").first();
  await drawing.waitFor({ state: "visible" });
  return {
    before,
    after: await drawing.isVisible(),
    name: await drawing.getAttribute("aria-label"),
    text: await drawing.evaluate((svg) => [...svg.querySelectorAll("text")].map((one) => one.textContent)),
    again: await entry.locator(".again code").first().textContent(),
  };
}

async function clause(page) {
  await page.locator("button.only[data-clause=D8]").click();
  const told = { ...(await state(page)), chosen: await page.locator("select[name=clause]").inputValue() };
  told.focus = await page.evaluate(() => document.activeElement.id);
  await page.locator("select[name=clause]").selectOption("");
  return told;
}

async function search(page) {
  await page.locator("input[name=text]").fill("PAGE-passes");
  const found = await state(page);
  await page.locator("input[name=text]").fill("there is no such scenario");
  const nothing = await state(page);
  await page.locator("input[name=text]").fill("");
  return { found, nothing };
}

async function keyboard(page) {
  const focused = () => page.evaluate(() => {
    const one = document.activeElement;
    const style = getComputedStyle(one);
    return { text: one.textContent.trim(), tag: one.tagName, outline: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 };
  });
  const told = {};
  await page.goto(address);
  await page.keyboard.press("Tab");
  told.skip = { ...(await focused()), visible: (await page.locator(".skip").boundingBox()).y >= 0 };
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  told.filter = await focused();
  await page.keyboard.press("Space");
  told.pressed = await state(page);
  await page.keyboard.press("Enter");
  told.released = await state(page);
  await page.locator("[id='scenario-page-passes'] > summary").focus();
  await page.keyboard.press("Enter");
  told.opened = (await state(page)).open.includes("scenario-page-passes");
  await page.keyboard.press("Enter");
  told.closed = !(await state(page)).open.includes("scenario-page-passes");
  return told;
}

async function themes(page) {
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const told = { light: await ground() };
  await page.emulateMedia({ colorScheme: "dark" });
  told.systemDark = await ground();
  await page.getByRole("button", { name: "light", exact: true }).click();
  told.lightInDark = await ground();
  await page.getByRole("button", { name: "auto", exact: true }).click();
  told.auto = await ground();
  await page.emulateMedia({ colorScheme: "light" });
  await page.getByRole("button", { name: "dark", exact: true }).click();
  told.darkInLight = await ground();
  told.pressed = await page.locator(".themes button[aria-pressed=true]").allTextContents();
  await page.getByRole("button", { name: "auto", exact: true }).click();
  return told;
}

async function print(page) {
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  const told = await page.evaluate(() => ({
    filters: document.querySelector(".filters").checkVisibility(),
    themes: document.querySelector(".themes").checkVisibility(),
    clauses: document.querySelector(".clauses").checkVisibility(),
    ink: getComputedStyle(document.body).color,
    wide: [...document.querySelectorAll("svg.lanes")].some((svg) => svg.getBoundingClientRect().right > innerWidth + 1),
  }));
  await page.emulateMedia({ media: "screen", colorScheme: "light" });
  return told;
}

async function link(page) {
  await page.locator("button[data-group=verdict][data-value=pass]").click();
  await page.locator(".what a").first().click();
  await page.waitForFunction(() => document.activeElement.closest(".entry"));
  const told = await state(page);
  return { ...told, focus: await page.evaluate(() => document.activeElement.closest(".entry")?.id) };
}

async function attack(page) {
  const ran = await page.evaluate(() => "planted" in window);
  const refused = await page.evaluate(() => new Promise((resolve) => {
    document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective), { once: true });
    const script = document.createElement("script");
    script.textContent = "window.planted = true";
    document.body.append(script);
    setTimeout(() => resolve("nothing"), 3_000);
  }));
  const image = await page.evaluate(() => new Promise((resolve) => {
    document.addEventListener("securitypolicyviolation", (event) => resolve(event.effectiveDirective), { once: true });
    document.body.append(Object.assign(new Image(), { src: "http://127.0.0.1:9/x.png" }));
    setTimeout(() => resolve("nothing"), 3_000);
  }));
  return { ran, refused, image, planted: await page.evaluate(() => "planted" in window) };
}
