/** The interpreter selected in Microsoft's Python extension. A soft dependency: everything works without it. */

import * as vscode from "vscode";

const ID = "ms-python.python";

/** The part of its public API used here (since 2023.6). */
interface PythonApi {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

async function api(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<Partial<PythonApi>>(ID);
  if (extension === undefined) {
    return undefined;
  }
  const exported = extension.isActive ? extension.exports : await extension.activate();
  return exported.environments === undefined ? undefined : (exported as PythonApi);
}

export async function selectedPython(resource: vscode.Uri | undefined, log: vscode.LogOutputChannel): Promise<string | undefined> {
  try {
    const python = await api();
    const environment = python?.environments.getActiveEnvironmentPath(resource);
    if (python === undefined || environment === undefined) {
      return undefined;
    }
    return (await python.environments.resolveEnvironment(environment))?.executable.uri?.fsPath;
  } catch (error) {
    log.warn(`The Python extension did not return its interpreter: ${String(error)}`);
    return undefined;
  }
}

/** Calls `changed` when another interpreter is selected. */
export async function onSelectedPythonChange(changed: () => void): Promise<vscode.Disposable | undefined> {
  return (await api())?.environments.onDidChangeActiveEnvironmentPath(changed);
}
