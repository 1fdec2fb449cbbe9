// The client of the service that this page is from, and signing in.

import { Client } from "./klsa.js";

let asking = null; // one dialog at a time, however many requests need it
let askForKey = null;
let signedIn = 0; // times

/** Say how to sign in: a function that promises to do so. */
export function onKeyNeeded(ask) {
  askForKey = ask;
}

function sent(address, options, request = fetch) {
  const headers = new Headers(options.headers);
  // Proves that the page sent the request: the service ignores its cookie without it.
  headers.set("X-Requested-With", "klsa-search");
  return request(address, { ...options, headers, cache: "no-store" });
}

async function sentSignedIn(address, options, request = fetch) {
  const before = signedIn;
  const answer = await sent(address, options, request);
  if (answer.status !== 401 || askForKey === null) return answer;
  if (asking || before === signedIn) { // else the request was sent before signing in, and its answer is late
    asking ??= askForKey().then(() => (signedIn += 1)).finally(() => (asking = null));
    await asking;
  }
  options.signal?.throwIfAborted();
  // A cookie that is still missing after sign-in is one that the browser does not keep.
  return sent(address, options, request);
}

/** A client that calls `progress` with the bytes of a body that are sent, which `fetch` cannot. */
export function uploading(progress) {
  const request = (address, { method, headers, body, signal }) => new Promise((resolve, reject) => {
    const upload = new XMLHttpRequest();
    upload.open(method, address);
    for (const [name, value] of headers) upload.setRequestHeader(name, value);
    upload.upload.addEventListener("progress", ({ loaded }) => progress(loaded));
    upload.addEventListener("load", () => {
      const after = upload.getResponseHeader("Retry-After");
      resolve(new Response(upload.response, { status: upload.status, headers: after ? { "Retry-After": after } : {} }));
    });
    upload.addEventListener("error", () => reject(new TypeError("the connection failed")));
    upload.addEventListener("abort", () => reject(signal.reason));
    signal.addEventListener("abort", () => upload.abort(), { once: true });
    upload.send(body);
  });
  return new Client(".", { fetch: (address, options) => sentSignedIn(address, options, request) });
}

/** Failures are shown at once, so nothing is repeated. */
export const client = new Client(".", { fetch: sentSignedIn, retries: 0 });

/** For suggestions and other requests that the page works without: they never open the sign-in
 * dialog, which would take the focus from what is being typed. */
export const optional = new Client(".", { fetch: sent, retries: 0 });

/** Sign in by name and password, which another may replace, or by an API key alone. They are only
 * sent here: the service remembers them by a cookie. Keys have no other signs, which no header has. */
export function signIn(name, secret, replacement) {
  return name || !/^[!-~]*$/.test(secret)
    ? optional.request("POST", "/sign-in", { body: { name, password: secret, new_password: replacement } })
    : new Client(".", { key: secret, fetch: sent, retries: 0 }).request("POST", "/session");
}

/** Promise that the user signs in, as the dialog asks. */
export function askToSignIn() {
  return askForKey();
}

/** Sign out; also if the session has ended already. */
export function signOut() {
  return new Client(".", { fetch: sent, retries: 0 }).request("DELETE", "/session");
}

/** The path of an index in the HTTP API. */
export function pathOf(index) {
  return `/indexes/${encodeURIComponent(index)}`;
}
