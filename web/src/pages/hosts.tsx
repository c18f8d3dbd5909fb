import { t } from "../words.ts";

export default function Hosts() {
  return <p>{t("loading")}</p>;
}
