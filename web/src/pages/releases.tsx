import { t } from "../words.ts";

export default function Releases() {
  return <p>{t("loading")}</p>;
}
