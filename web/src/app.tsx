// The frame around all pages: who is signed in, where to go, and whether the data is live.
import { useEffect } from "preact/hooks";
import { Failure, readSession, session } from "./api.ts";
import { startLive } from "./live/stream.ts";
import { useState } from "preact/hooks";
import { Page } from "./pages.tsx";
import { place } from "./router.ts";
import { Enter, SignIn } from "./signin.tsx";
import { Shell } from "./shell.tsx";
import { Problem } from "./ui/kit.tsx";

export function App() {
  const [failure, setFailure] = useState<Failure>();
  const read = () => {
    setFailure(undefined);
    readSession().catch((err: unknown) => { if (err instanceof Failure) setFailure(err); else throw err; });
  };
  useEffect(read, []);
  useEffect(() => { if (session.value) startLive(session.value.id); }, [session.value?.id]);

  const { path, query } = place.value;
  if (path === "/enter") return <Enter code={query.get("code") ?? ""} />;
  if (failure && session.value === undefined) return <main class="alone"><Problem of={failure} retry={read} /></main>;
  if (session.value === undefined) return null;
  if (session.value === null) return <SignIn />;
  return <Shell><Page /></Shell>;
}
