{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- /* Made anew. */}}
{{ code anew }}
