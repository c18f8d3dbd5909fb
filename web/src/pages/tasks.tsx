import { t } from "../words.ts";

export default function Tasks() {
  return <p>{t("loading")}</p>;
}
