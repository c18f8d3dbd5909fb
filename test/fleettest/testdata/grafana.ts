// What a dashboard of examples/grafana may have: Grafana's own types, with the kinds of panels that we use. dashboards_schema_test.go
// writes each dashboard as a value of the type Ours.
import type { Dashboard, Panel, VariableModel } from "@grafana/schema/dist/esm/raw/dashboard/x/Dashboard_types.gen";
import type { Options as StateTimeline, FieldConfig as StateTimelineField } from "@grafana/schema/dist/esm/raw/composable/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen";
import type { Options as Stat } from "@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen";
import type { Options as Table, FieldConfig as TableField } from "@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen";
import type { Options as TimeSeries, FieldConfig as TimeSeriesField } from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";

// Words is a type whose enumerations are the words of a file, and whose fields may be left out: Grafana has a default for each.
type Words<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T
  : T extends (infer U)[] ? Words<U>[] : { [K in keyof T]?: Words<T[K]> };

type Source = { type: "prometheus"; uid: string };

// The schema leaves queries to the plugins of the sources. These are the fields of the one for Prometheus.
type Query = {
  refId: string; datasource: Source; expr: string; legendFormat?: string;
  format?: "time_series" | "table" | "heatmap"; instant?: boolean; range?: boolean; interval?: string;
};

type Of<Kind extends string, Options, Field> =
  Words<Omit<Panel, "type" | "targets" | "options" | "fieldConfig" | "datasource">> & {
    id: number; title: string; type: Kind; datasource: Source; targets: Query[]; options: Words<Options>;
    fieldConfig: { defaults: Words<Omit<Panel["fieldConfig"] & {}, "overrides">["defaults"]> & { custom?: Words<Field> }; overrides: [] };
  };

type Variable = Words<Omit<VariableModel, "name" | "type" | "query" | "datasource">> & { name: string } & (
  { type: "datasource"; query: "prometheus" } | { type: "query"; datasource: Source; query: { query: string; refId: string } });

export type Ours = Words<Omit<Dashboard, "panels" | "templating" | "schemaVersion">> & {
  schemaVersion: number; templating: { list: Variable[] };
  panels: (Of<"timeseries", TimeSeries, TimeSeriesField> | Of<"table", Table, TableField> | Of<"stat", Stat, {}> |
    Of<"state-timeline", StateTimeline, StateTimelineField>)[];
};
